"""The common parts of pages: a visit, how a page is rendered, and the guards before a change."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from werkzeug.exceptions import Forbidden
from werkzeug.utils import redirect
from werkzeug.wrappers import Request, Response

from kafka08.console import shown
from kafka08.console.audit import Audit
from kafka08.console.brokers.http_pages import BrokerPages
from kafka08.console.brokers.traffic import TrafficMeter
from kafka08.console.browser import Browser
from kafka08.console.cluster_state import StateReader
from kafka08.console.config import ConsoleConfig
from kafka08.console.forms import Problem
from kafka08.console.groups import ConsoleGroups
from kafka08.console.history import History
from kafka08.console.observer import Observer, Past
from kafka08.console.pages.data import encoded
from kafka08.console.timeline.audit_file import read_back
from kafka08.console.timeline.journal import Journal
from kafka08.console.timeline.timeline import Timeline
from kafka08.console.transactions import TransactionAdmin
from kafka08.groups.admin import GroupAdmin
from kafka08.lag.collector import LagCollector
from kafka08.network.channel import Channel, Connect
from kafka08.runtime import Runtime
from kafka08.security.users import User
from zk.client import ZkClient

_MENU = (
    ("/", "Overview"),
    ("/brokers", "Brokers"),
    ("/topics", "Topics"),
    ("/groups", "Groups"),
    ("/transactions", "Transactions"),
    ("/events", "Events"),
    ("/migration", "Migration"),
    ("/zookeeper/", "ZooKeeper"),
)
_CHANGES = (("/elect", "Elections"), ("/reassign", "Moves"))
_AUDIT = (("/audit", "Changes"),)
_ACCESS = (("/acls", "Access"),)
_ACCESS_PATHS = ("/acls", "/users", "/quotas")
_SECTIONS = {path for path, _ in (*_MENU, *_CHANGES, *_AUDIT, *_ACCESS)}
HTML, JSON, TEXT = "text/html", "application/json", "text/plain"


def root_of(name: str) -> str:
    """The path below which the pages of a named cluster are, without a slash at its end."""
    return f"/c/{name}"


def preferred(request: Request, *types: str) -> str:
    """The one of these content types that the client likes best, the first among equals."""
    return request.accept_mimetypes.best_match(types, types[0])


def templates() -> Environment:
    """The templates of all pages."""
    found = Environment(
        loader=PackageLoader("kafka08.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(shown.FILTERS)
    return found


class Tokens:
    """Tokens that pages carry in their forms: a foreign page cannot know a user's."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def of(self, user: User, text: str = "") -> str:
        """With ``text``, one that goes with that text alone."""
        said = f"{user.name}\0{text}" if text else user.name
        return hmac.new(self._key, said.encode(), "sha256").hexdigest()

    def fits(self, user: User, token: str, text: str = "") -> bool:
        return hmac.compare_digest(self.of(user, text).encode(), token.encode())


class Site:
    """The parts that the pages of one cluster share. ``groups`` has the connections to brokers,
    but for those of the browser, which come from ``channel``. ``name``: of the cluster where the
    console shows several, "" otherwise. Raises ConfigError."""

    def __init__(
        self,
        config: ConsoleConfig,
        zk: ZkClient,
        groups: GroupAdmin,
        runtime: Runtime,
        channel: Connect = Channel,
        *,
        name: str = "",
    ) -> None:
        clock = runtime.clock
        self.name = name
        self.config = config
        self.zk = zk
        self.clock = clock
        self.runtime = runtime
        self.broker_pages = BrokerPages(groups.cluster, config, runtime)
        self.transactions = TransactionAdmin(groups.cluster, clock)
        self.observer = Observer(
            StateReader(zk, groups.cluster, clock),
            LagCollector(groups.cluster, zk, clock),
            self.transactions,
            Past(History(config.history_path, clock.millis()), _timeline(config, name)),
            config,
            groups.cluster,
            TrafficMeter(self.broker_pages, runtime),
            runtime,
        )
        self.groups = ConsoleGroups(groups, zk)
        self.browser = Browser(groups.cluster, config, runtime, channel)
        self.audit = Audit(config.audit_file, clock, name)
        self.tokens = Tokens()
        self.templates = templates()

    @property
    def cluster(self) -> str:
        """The name of the cluster on its pages."""
        return self.name or self.config.zookeeper_connect


def _timeline(config: ConsoleConfig, cluster: str) -> Timeline:
    """Without a file of history it begins with the last changes in the audit file."""
    timeline = Timeline(Journal(config.history_path), config.refresh_ms, config.lag_interval_ms)
    if config.audit_file:
        with suppress(OSError):
            timeline.remember(read_back(config.audit_file, None, [], cluster).entries)
    return timeline


class Visit(NamedTuple):
    """One request to a page. ``problem``: why the form in it was not carried out; its page is shown
    again, with what was entered.

    Paths are those within the pages of a cluster. Templates and ``redirect`` put ``root`` before
    them."""

    site: Site
    request: Request
    user: User
    problem: Problem | None = None

    @property
    def root(self) -> str:
        """Where the pages of the cluster are mounted (SCRIPT_NAME); "" for the top."""
        return self.request.root_path

    @property
    def may_change(self) -> bool:
        """Whether forms are shown at all."""
        return not self.site.config.read_only

    def may(self, role: str) -> bool:
        return self.may_change and self.user.may(role)

    def entered(self, field: str, default: object = "") -> object:
        """The text of a field that is shown again, or ``default``."""
        return default if self.problem is None else self.request.form.get(field, default)

    def chosen(self, field: str) -> list[str]:
        """The boxes of that name that were ticked in a form that is shown again."""
        return [] if self.problem is None else self.request.form.getlist(field)

    @property
    def refresh(self) -> int:
        """Seconds between two looks at the cluster."""
        return max(self.site.config.refresh_ms // 1000, 1)

    def answer(
        self,
        template: str,
        data: Mapping[str, object],
        text: Callable[[], Response] | None = None,
        **look: object,
    ) -> Response:
        """A page in the form that the client accepts: ``data`` as JSON, ``text`` if there is one,
        or HTML. The template has ``data``, and beside it ``look``, as ``render`` takes it. A form
        that is shown again is HTML."""
        form = (
            HTML if self.problem else preferred(self.request, *([TEXT] if text else []), HTML, JSON)
        )
        if form == JSON:
            response = Response(encoded({**self._seen(), **data}), mimetype=JSON)
        elif form == TEXT and text:
            response = text()
        else:
            response = self.render(template, 200, data=data, **look)
        response.vary.add("Accept")
        return response

    def _seen(self) -> dict[str, object]:
        """When the data of a page was seen, and why it is not newer."""
        observer = self.site.observer
        return {
            "cluster": self.site.cluster,
            "seen": shown.iso(observer.state.time_ms if observer.state else None),
            "lag_seen": shown.iso(observer.lags.time_ms if observer.lags else None),
            "errors": [each for each in (observer.error, observer.lag_error) if each],
        }

    def render(self, template: str, status: int = 200, **values: object) -> Response:
        """``refresh`` among the values: seconds after which the page is looked at again."""
        observer = self.site.observer
        common = {
            "chosen": self.chosen,
            "cluster": self.site.config.zookeeper_connect,
            "cluster_name": self.site.name,
            "clusters": self._others(),
            "entered": self.entered,
            "may": self.may,
            "menu": self._menu(),
            "messages_shown": self.site.config.show_messages,
            "now_ms": self.site.clock.millis(),
            "observer": observer,
            "path": self.request.path,
            "place": self._place(),
            "problem": self.problem,
            "read_only": self.site.config.read_only,
            "refresh": 0,
            "root": self.root,
            "told": self._told(),
            "token": self.site.tokens.of(self.user) if self.may_change else "",
            "user": self.user.name,
        }
        text = self.site.templates.get_template(template).render(common | values)
        return Response(text, status, mimetype="text/html")

    def _others(self) -> list[tuple[str, str]]:
        """The clusters of the console, with the page of each that is like this one."""
        path = self.request.path if self.request.path in _SECTIONS else "/"
        return [(name, root_of(name) + path) for name in self.site.config.clusters]

    def _menu(self) -> tuple[tuple[str, str], ...]:
        """Rules, users and quotas where brokers have any: those of 0.8.2.2 do not."""
        state = self.site.observer.state
        access = _ACCESS if state and state.asked is not None else ()
        changes = _CHANGES if self.may("operator") else ()
        return _MENU + access + changes + (_AUDIT if self.may("admin") else ())

    def _place(self) -> str:
        """The entry of the menu that the page belongs to."""
        path = self.request.path
        if path.startswith(_ACCESS_PATHS):
            return _ACCESS[0][0]
        first = "/" + path.split("/")[1]
        return {"/group": "/groups", "/create": "/topics", "/zookeeper": "/zookeeper/"}.get(
            first, first
        )

    def _told(self) -> str:
        """The text of ``done``; nothing that somebody else put into a link."""
        told, mark = (self.request.args.get(name, "") for name in ("told", "mark"))
        return told if told and self.site.tokens.fits(self.user, mark, told) else ""

    def record(self, action: str, target: str, before: object, after: object) -> None:
        """A change that was made, for the audit log and the timeline."""
        address = self.request.remote_addr or "-"
        self.site.audit.record(self.user.name, address, action, target, before, after)
        self.site.observer.timeline.changed(self.site.clock.millis(), action, target)

    def done(self, path: str, told: str) -> Response:
        """Back to a page of the cluster, which shows the result."""
        joined = "&" if "?" in path else "?"
        values = {"told": told, "mark": self.site.tokens.of(self.user, told)}
        return self.redirect(f"{path}{joined}{urlencode(values)}")

    def redirect(self, path: str) -> Response:
        """To another page of the cluster."""
        return redirect(self.root + path, 303)


Page = Callable[..., Response]


class PageRoute(NamedTuple):
    """A page under a path. ``role``: of users who may see it, None for all. ``form``: the page
    whose form this one takes, and which is shown again if that fails; the others change nothing."""

    path: str
    page: Page
    role: str | None = None
    form: Page | None = None

    @property
    def changes(self) -> bool:
        return self.form is not None

    def check(self, visit: Visit) -> None:
        """Raises Forbidden if the user may not do it."""
        if self.role is None:
            return
        if not visit.may_change:
            raise Forbidden("This console is read-only (console.read.only).")
        if not visit.user.may(self.role):
            raise Forbidden(f"This needs the role {self.role}.")
