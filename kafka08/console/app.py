"""The console as a WSGI application: finds the page, guards it, and shows errors in plain words."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from urllib.parse import quote

from werkzeug.datastructures import Headers
from werkzeug.exceptions import BadRequest, Conflict, Forbidden, HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from kafka08.console.access import acls, quotas, users
from kafka08.console.brokers import broker_settings
from kafka08.console.brokers import pages as brokers
from kafka08.console.failures import pages as failures
from kafka08.console.forms import Problem, reason_of
from kafka08.console.migration import pages as migration
from kafka08.console.pages import (
    all_messages,
    audit_log,
    cluster,
    group_changes,
    groups,
    machine,
    messages,
    moves,
    topic_changes,
    transactions,
    zookeeper,
)
from kafka08.console.pages.guards import Login, failure, guarded, unauthorized
from kafka08.console.site import HTML, JSON, TEXT, Page, PageRoute, Site, Visit, preferred
from kafka08.console.timeline import pages as events
from kafka08.console.topics import cloning, emptying, partition, topic_settings
from kafka08.console.topics import pages as topics
from kafka08.errors import (
    AdminOperationError,
    ConfigError,
    InvalidTopicError,
    KafkaError,
    TopicExistsError,
)
from kafka08.network.http import Environ, StartResponse
from kafka08.security.users import ADMIN, OPERATOR, User, Users

logger = logging.getLogger("kafka.console.Console")

ROUTES = (
    PageRoute("/", cluster.overview),
    PageRoute("/brokers", brokers.brokers),
    PageRoute("/brokers/<int:broker_id>", brokers.broker),
    PageRoute("/brokers/<int:broker_id>/settings", broker_settings.settings),
    PageRoute(
        "/brokers/<int:broker_id>/settings",
        broker_settings.change_settings,
        ADMIN,
        broker_settings.settings,
    ),
    PageRoute("/brokers/<int:broker_id>/what-if", failures.what_if_page),
    PageRoute("/topics", topics.topics),
    PageRoute("/topics/<name>", topics.topic),
    PageRoute("/topics/<name>/<int:number>", partition.partition),
    PageRoute("/topics/<name>/messages", messages.messages),
    PageRoute("/topics/<name>/raw", messages.raw),
    PageRoute("/topics/<name>/messages/all", all_messages.all_messages),
    PageRoute("/topics/<name>/send", topic_changes.send_form, OPERATOR),
    PageRoute("/topics/<name>/send", topic_changes.send, OPERATOR, topic_changes.send_form),
    PageRoute("/topics/<name>/change", topic_changes.change_form, ADMIN),
    PageRoute(
        "/topics/<name>/partitions", topic_changes.add_partitions, ADMIN, topic_changes.change_form
    ),
    PageRoute("/topics/<name>/settings", topic_settings.settings),
    PageRoute(
        "/topics/<name>/settings",
        topic_settings.change_settings,
        ADMIN,
        topic_settings.settings,
    ),
    PageRoute("/topics/<name>/empty", emptying.empty, ADMIN, topic_changes.change_form),
    PageRoute("/topics/<name>/clone", cloning.clone, ADMIN, topic_changes.change_form),
    PageRoute("/topics/<name>/delete", topic_changes.delete, ADMIN, topic_changes.change_form),
    PageRoute("/create", topic_changes.create_form, ADMIN),
    PageRoute("/create", topic_changes.create, ADMIN, topic_changes.create_form),
    PageRoute("/audit", audit_log.audit_log, ADMIN),
    PageRoute("/elect", moves.elect_form, OPERATOR),
    PageRoute("/elect", moves.elect, OPERATOR, moves.elect_form),
    PageRoute("/reassign", moves.reassign_form, OPERATOR),
    PageRoute("/reassign", moves.reassign, ADMIN, moves.reassign_form),
    PageRoute("/groups", groups.groups),
    PageRoute("/group", groups.group),
    PageRoute("/group/reset", group_changes.reset_form, OPERATOR),
    PageRoute("/group/reset", group_changes.reset, OPERATOR, group_changes.reset_form),
    PageRoute("/group/delete", group_changes.delete_form, OPERATOR),
    PageRoute("/group/delete", group_changes.delete, OPERATOR, group_changes.delete_form),
    PageRoute("/events", events.events),
    PageRoute("/transactions", transactions.transactions),
    PageRoute("/transactions/abort", transactions.abort_form, ADMIN),
    PageRoute("/transactions/abort", transactions.abort, ADMIN, transactions.abort_form),
    PageRoute("/acls", acls.acls),
    PageRoute("/acls/add", acls.add_form, ADMIN),
    PageRoute("/acls/add", acls.add, ADMIN, acls.add_form),
    PageRoute("/acls/delete", acls.delete_form, ADMIN),
    PageRoute("/acls/delete", acls.delete, ADMIN, acls.delete_form),
    PageRoute("/users", users.users),
    PageRoute("/users/add", users.add_form, ADMIN),
    PageRoute("/users/add", users.add, ADMIN, users.add_form),
    PageRoute("/users/password", users.password_form, ADMIN),
    PageRoute("/users/password", users.set_password, ADMIN, users.password_form),
    PageRoute("/users/delete", users.delete_form, ADMIN),
    PageRoute("/users/delete", users.delete, ADMIN, users.delete_form),
    PageRoute("/quotas", quotas.quotas),
    PageRoute("/quotas/set", quotas.set_form, ADMIN),
    PageRoute("/quotas/set", quotas.set_quotas, ADMIN, quotas.set_form),
    PageRoute("/quotas/remove", quotas.remove_form, ADMIN),
    PageRoute("/quotas/remove", quotas.remove, ADMIN, quotas.remove_form),
    PageRoute("/migration", migration.migration),
    PageRoute("/zookeeper/", zookeeper.node),
    PageRoute("/zookeeper/<path:path>", zookeeper.node),
    PageRoute("/metrics", machine.metrics),
    PageRoute("/health/live", machine.live),
    PageRoute("/health/ready", machine.ready),
    PageRoute("/static/<name>", machine.static),
)

_REFUSED = (ValueError, AdminOperationError, ConfigError, InvalidTopicError, TopicExistsError)
_FORM = "application/x-www-form-urlencoded"
_FIELDS = 1000


class _FormRequest(Request):
    max_form_parts = _FIELDS


class Console:
    """The pages of one cluster. ``users`` None: no login is needed. ``sleep(seconds)`` slows failed
    logins down."""

    def __init__(self, site: Site, users: Users | None, sleep: Callable[[float], object]) -> None:
        self._site = site
        self._login = Login(users, sleep)
        self._map = Map(
            [
                Rule(each.path, endpoint=each, methods=["POST" if each.changes else "GET"])
                for each in (*ROUTES, *_ways_back())
            ]
        )

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        request = _FormRequest(environ)
        return guarded(self._respond(request))(environ, start_response)

    def _respond(self, request: Request) -> Response:
        visit = Visit(self._site, request, User("", ADMIN))
        try:
            user = self._login.user(request)
            if user is None:
                return unauthorized()
            visit = visit._replace(user=user)
            route: PageRoute
            route, arguments = self._map.bind_to_environ(request.environ).match()
            route.check(visit)
            if route.form is None:
                return route.page(visit, **arguments)
            self._check_change(visit)
            try:
                return route.page(visit, **arguments)
            except (Conflict, *_REFUSED, OSError, KafkaError) as error:
                problem = Problem.of(error)
            return self._again(visit, route.form, arguments, problem)
        except HTTPException as error:
            if error.response is not None or error.code is None or error.code < 400:
                return error.get_response(request.environ)
            return self._failure(visit, error.code, error.name, str(error.description))
        except _REFUSED as error:
            return self._failure(visit, 400, "This cannot be done", reason_of(error))
        except (OSError, KafkaError) as error:
            return self._failure(visit, 503, "The cluster did not answer as it should", str(error))
        except Exception:
            path = visit.root + request.path
            logger.exception("Error while answering %s %s", request.method, path)
            return self._failure(visit, 500, "An error of the console", "The log has the details.")

    def _again(
        self, visit: Visit, form: Page, arguments: Mapping[str, object], problem: Problem
    ) -> Response:
        """The page of a form, with what was entered and the problem; or that alone, if there is
        nothing left that the form could be about."""
        try:
            page = form(visit._replace(problem=problem), **arguments)
        except (HTTPException, *_REFUSED, OSError, KafkaError):
            return self._failure(visit, problem.status, "This cannot be done", problem.text)
        page.status_code = problem.status
        return page

    def _check_change(self, visit: Visit) -> None:
        """Raises Forbidden or BadRequest."""
        request = visit.request
        if request.mimetype != _FORM:
            raise BadRequest(f"A change is a form: {_FORM}.")
        if not is_same_origin(request.headers, request.host_url.rstrip("/")):
            raise Forbidden("This form was sent by another site.")
        if not self._site.tokens.fits(visit.user, request.form.get("token", "")):
            raise Forbidden("The form is too old, or not of this console. Load its page again.")

    def _failure(self, visit: Visit, code: int, heading: str, text: str) -> Response:
        form = preferred(visit.request, TEXT, HTML, JSON)
        if form == HTML:
            return visit.render("message.html", code, heading=heading, text=text)
        return failure(form, code, heading, text)


def _ways_back() -> Iterator[PageRoute]:
    """From the path of a form that was shown again to that of its page: a browser may look there
    once more."""
    pages = {each.page: each.path for each in ROUTES if not each.changes}
    for route in ROUTES:
        if route.form is not None and pages[route.form] != route.path:
            yield PageRoute(route.path, partial(_redirected, pages[route.form]), route.role)


def _redirected(path: str, visit: Visit, name: str) -> Response:
    return visit.redirect(path.replace("<name>", quote(name)))


def is_same_origin(headers: Headers, origin: str) -> bool:
    """Whether a page of the console sent the request: ``origin`` is the console's, as it was
    asked for. Clients other than browsers send neither header."""
    site = headers.get("Sec-Fetch-Site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    return headers.get("Origin", origin) == origin
