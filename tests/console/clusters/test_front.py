"""kafka08.console.clusters.front."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families
from werkzeug.routing import Map, Rule
from werkzeug.test import Client

from kafka08.console.app import ROUTES
from kafka08.console.clusters.front import Front
from kafka08.security.scram import credential_of, encode_credential
from kafka08.security.users import User
from tests.console.access.served import TOPIC, AccessScene, allow
from tests.console.clusters.scene import NAMES, FrontScene
from tests.console.scene import BROKERS, text_of
from zk import entity_configs

PROD = "/c/prod"
SWITCHER = re.compile(r'<nav id="clusters".*?</nav>', re.DOTALL)
TARGET = re.compile(r'\b(?:href|src|action|formaction|content)="([^"]*)"')
MISSING = [
    PROD + path
    for path in (
        "/none",
        "/topics/none",
        "/group/delete",
        "/group/reset",
        "/transactions/abort",
    )
]
"""Pages of errors; the last ones are about a group and a transaction, and none is given."""
ACCESS = ("/acls", "/users", "/quotas")
FRONTS = ("frame.html", "clusters.html", "front_message.html")


def seen(**settings: object) -> FrontScene:
    scene = FrontScene(**settings)  # type: ignore[arg-type]
    scene.look()
    return scene


def targets(page: str, path: str) -> set[str]:
    """All that a page leads to, without what the switcher does."""
    found = TARGET.findall(SWITCHER.sub("", page))
    return {
        urljoin(path, html.unescape(each)).partition("#")[0]
        for each in found
        if each.startswith(("/", "?", "#")) or "//" in each
    }


# --- the pages of a mounted cluster


def crawled(client: Client, starts: list[str], missing: Sequence[str] = MISSING) -> set[str]:
    """The paths of ROUTES that links, forms and redirects lead to. None of them leaves the cluster,
    and only the pages that are ``missing`` are not there."""
    left, visited = [*starts, *missing], set()
    while left:
        path = left.pop()
        if path in visited:
            continue
        visited.add(path)
        answer = client.get(path, headers={"Accept": "text/html"})
        assert answer.status_code in ((404,) if path in missing else (200, 303, 308)), path
        found = targets(answer.text, path) if answer.mimetype == "text/html" else set()
        if "Location" in answer.headers:
            found.add(answer.headers["Location"])
        assert [each for each in found if not each.startswith(f"{PROD}/")] == [], path
        # Lists can be sorted by each column, in both orders.
        left += [each for each in found if "sort=" not in each or "?sort=" in each]
    routes = Map([Rule(each.path, endpoint=each.path) for each in ROUTES if not each.changes])
    adapter = routes.bind("localhost")
    paths = [urlsplit(each).path.removeprefix(PROD) for each in visited - {*missing}]
    return {adapter.match(each)[0] for each in paths if adapter.test(each)}


def test_no_page_of_a_cluster_leads_out_of_it(tmp_path: Path) -> None:
    scene = seen(audit_file=str(tmp_path / "audit"))
    for _ in range(101):
        scene.prod.site.audit.record("ann", "-", "create", "t", None, None)
    del scene.prod.server.nodes["/brokers/ids/2"]
    for _ in range(2):  # a graph of what comes in a second begins with the third look
        scene.prod.runtime.clock.advance(60)
        scene.prod.look()
        scene.prod.register(BROKERS[1])
    assert "/events?from=" in scene.get(f"{PROD}/").text
    assert "/events?from=" in scene.get(f"{PROD}/group?name=g").text
    found = crawled(
        scene.client,
        [
            f"{PROD}/",
            f"{PROD}/topics/t/messages?from=oldest",
            f"{PROD}/topics/t/messages/all",
            f"{PROD}/reassign?topics=t&brokers=1,2",
            f"{PROD}/group/reset?name=g&topic=t&to=earliest",
            f"{PROD}/metrics",
            f"{PROD}/health/ready",
        ],
    )
    left = {each.path for each in ROUTES if not each.changes} - found
    assert {each for each in left if not each.startswith(ACCESS)} == {"/health/live"}


def test_no_page_of_rules_users_and_quotas_leads_out_of_its_cluster() -> None:
    scene = AccessScene(name="prod", clusters=NAMES, read_only=False)
    zk: Any = scene.session
    secret = encode_credential(credential_of("SCRAM-SHA-256", "old", b"a salt", 4096))
    own = {"SCRAM-SHA-256": secret, "producer_byte_rate": "1"}
    entity_configs.alter(zk, "users/ann", lambda _: own)
    scene.store.add(TOPIC, [allow()])
    scene.look()
    client = Client(Front([scene.site], None, scene.runtime.sleep))
    starts = [f"{PROD}/{page}" for page in ("acls", "acls?principal=User%3Aann", "users", "quotas")]
    forms = [
        PROD + path
        for path in ("/acls/delete", "/users/password", "/users/delete", "/quotas/remove")
    ]
    found = crawled(client, starts, forms)
    assert {each.path for each in ROUTES if each.path.startswith(ACCESS)} <= found


def test_templates_of_a_cluster_have_no_path_of_their_own() -> None:
    for file in (files("kafka08.console") / "templates").iterdir():
        if file.name not in FRONTS:
            for each in re.findall(r'\b(?:href|src|action)="([^"]*)', file.read_text()):
                assert each.startswith(("{{ root }}", "#")), (file.name, each)


def test_the_switcher_keeps_the_section() -> None:
    scene = seen()

    def switcher(path: str) -> list[tuple[str, str]]:
        found = SWITCHER.findall(scene.get(path).text)
        return re.findall(r'href="([^"]*)"([^>]*)>', "".join(found))

    here = ' aria-current="true"'
    for path, section in (
        ("/topics", "/topics"),
        ("/topics/t", "/"),
        ("/zookeeper/", "/zookeeper/"),
    ):
        assert switcher(PROD + path) == [
            ("/", ""),
            (PROD + section, here),
            (f"/c/test.2{section}", ""),
        ]
    assert switcher("/")[0] == ("/", ' aria-current="page"')
    assert "<title>Topics - prod - kafka08 console</title>" in scene.get(f"{PROD}/topics").text


def test_a_console_of_one_cluster_has_no_switcher() -> None:
    page = seen().prod.get("/").text
    assert "/c/prod" in page  # it is one of two here, though it is not mounted
    alone = FrontScene(clusters=()).prod
    alone.look()
    page = alone.get("/").text
    assert "clusters" not in page and "/c/" not in page


def test_each_cluster_has_its_own_pages() -> None:
    scene = seen()
    assert "other" not in scene.get(f"{PROD}/topics").text
    assert "other" in scene.get("/c/test.2/topics").text
    assert scene.get("/c/test.2/topics/t").status_code == 404


def test_a_path_without_its_slash() -> None:
    scene = seen()
    for path, to in ((PROD, f"{PROD}/"), (f"{PROD}/zookeeper", f"{PROD}/zookeeper/")):
        answer = scene.get(path)
        assert answer.status_code == 308
        assert urlsplit(answer.headers["Location"]).path == to


def test_a_change_and_the_way_back() -> None:
    scene = seen()
    form = scene.get(f"{PROD}/create").text
    token = re.search(r'name="token" value="(\w+)"', form)
    assert token is not None
    made = {"name": "made", "partitions": 1, "factor": 1, "token": token[1]}
    answer = scene.post(f"{PROD}/create", **made)
    assert answer.status_code == 303
    location = answer.headers["Location"]
    assert location.startswith(f"{PROD}/topics/made?told=")
    scene.look()
    assert "Topic made was created." in scene.get(location).text
    assert "/brokers/topics/made" in scene.prod.server.nodes
    assert "/brokers/topics/made" not in scene.test.server.nodes


def test_a_form_of_one_cluster_changes_no_other() -> None:
    scene = seen()
    token = scene.prod.site.tokens.of(User("", "admin"))
    fields = {"name": "made", "partitions": 1, "factor": 1}
    assert scene.post("/c/test.2/create", **fields, token=token).status_code == 403
    assert scene.post(f"{PROD}/create", **fields).status_code == 403
    headers = {"Origin": "http://evil.example"}
    data = {**fields, "token": token}
    assert scene.client.post(f"{PROD}/create", data=data, headers=headers).status_code == 403
    assert "/brokers/topics/made" not in {*scene.prod.server.nodes, *scene.test.server.nodes}


def test_a_form_with_a_mistake_comes_back_and_can_be_loaded_again() -> None:
    scene = seen()
    token = scene.prod.site.tokens.of(User("", "admin"))
    path = f"{PROD}/topics/t/partitions"
    page = scene.post(path, token=token, partitions="x")
    assert page.status_code in (400, 409)
    assert targets(page.text, path) and all(
        each.startswith(f"{PROD}/") for each in targets(page.text, path)
    )
    again = scene.get(path)
    assert (again.status_code, again.headers["Location"]) == (303, f"{PROD}/topics/t/change")


def test_one_cluster_may_be_read_only() -> None:
    scene = seen(own={"prod": {"read_only": True}})
    assert 'id="read-only"' in scene.get(f"{PROD}/").text
    assert 'id="read-only"' not in scene.get("/c/test.2/").text
    token = scene.prod.site.tokens.of(User("", "admin"))
    fields = {"name": "made", "partitions": 1, "factor": 1, "token": token}
    assert scene.post(f"{PROD}/create", **fields).status_code == 403
    fields["token"] = scene.test.site.tokens.of(User("", "admin"))
    assert scene.post("/c/test.2/create", **fields).status_code == 303
    rows = dict(re.findall(r'<tr id="cluster-([^"]*)">(.*?)</tr>', scene.get("/").text, re.DOTALL))
    assert ["read-only" in rows[name] for name in NAMES] == [True, False]


def test_live_pages() -> None:
    scene = seen()
    answer = scene.get(f"{PROD}/topics/t/messages?from=tail")
    location = answer.headers["Location"]
    assert answer.status_code == 303
    assert location.startswith(f"{PROD}/topics/t/messages?")
    page = scene.get(location).text
    assert 'data-refresh="1"' in page
    script = re.search(r'<script src="([^"]*)"', page)
    assert script is not None and script[1] == f"{PROD}/static/console.js"
    text = scene.get(script[1]).text
    assert "fetch(location.href" in text
    assert re.findall(r"""fetch\(["']/""", text) == []


def test_pages_for_programs_downloads_and_terminals() -> None:
    scene = seen()
    for path in ("/", "/topics", "/groups", "/brokers/1"):
        assert json.loads(scene.get(PROD + path, "application/json").text)["cluster"] == "prod"
    text = scene.get(f"{PROD}/", "*/*")
    assert text.text.startswith("The cluster is degraded.\n")
    assert "\nprod, seen " in text.text
    raw = scene.get(f"{PROD}/topics/t/raw?partition=0&offset=0&part=value")
    assert (raw.status_code, raw.data) == (200, b"m")
    assert raw.headers["Content-Disposition"] == 'attachment; filename="t-0-0.value"'
    file = scene.get(f"{PROD}/topics/t/messages?from=oldest&form=json")
    assert len(json.loads(file.text)) == 50


def test_the_audit_log_names_the_cluster_and_each_shows_its_own(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    scene = seen(audit_file=str(file))
    for each, path in ((scene.prod, PROD), (scene.test, "/c/test.2")):
        token = each.site.tokens.of(User("", "admin"))
        fields = {"name": f"of-{each.site.name}", "partitions": 1, "factor": 1, "token": token}
        assert scene.post(f"{path}/create", **fields).status_code == 303
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["cluster"] for line in lines] == list(NAMES)
    page = text_of(scene.get(f"{PROD}/audit").text)
    assert "of-prod" in page and "of-test.2" not in page
    found = json.loads(scene.get("/c/test.2/audit", "application/json").text)["entries"]
    assert [(each["cluster"], each["target"]) for each in found] == [("test.2", "of-test.2")]


# --- the pages above them


def test_the_list_of_clusters() -> None:
    scene = seen()
    page = scene.get("/").text
    rows = dict(re.findall(r'<tr id="cluster-([^"]*)">(.*?)</tr>', page, re.DOTALL))
    assert list(rows) == list(NAMES)
    prod = text_of(rows["prod"])
    assert "The cluster is degraded. 1 partitions are under-replicated" in prod
    assert re.search(r"2 of 2 1 \d 0 s ago", prod)
    assert "The cluster is well. 2 of 2 0 0 0 s ago" in text_of(rows["test.2"])
    for each in targets(page, "/"):
        assert scene.get(each).status_code == 200
    assert 'data-refresh="5"' in page


def test_the_list_before_the_first_look() -> None:
    page = text_of(FrontScene().get("/").text)
    assert "It cannot be seen: the cluster has not been read yet. - - - not yet" in page


def test_the_list_as_json_and_as_text() -> None:
    scene = seen()
    answer = scene.get("/", "application/json")
    assert answer.vary.as_set() == {"accept"}
    prod, test = json.loads(answer.text)["clusters"]
    assert (prod["name"], prod["path"], prod["verdict"]) == ("prod", "/c/prod/", "degraded")
    assert (test["brokers"], test["brokers_up"], test["under_replicated"]) == (2, 2, 0)
    assert scene.get(prod["path"], "application/json").status_code == 200
    text = scene.get("/", "*/*")
    assert (text.status_code, text.mimetype) == (200, "text/plain")
    assert text.text.startswith("Clusters: 1 of 2 well\n")


def test_the_code_of_the_text_tells_of_lost_data() -> None:
    scene = FrontScene()
    assert scene.get("/", "*/*").status_code == 503
    scene.look()
    assert scene.get("/", "*/*").status_code == 200
    scene.test.topic("dead", [1], leader=-1, isr=[])
    scene.test.cluster.down = {9091, 9092}
    for id_ in (1, 2):
        del scene.test.server.nodes[f"/brokers/ids/{id_}"]
    scene.look()
    assert scene.get("/", "*/*").status_code == 503
    assert scene.get("/").status_code == 200


def test_metrics_of_all_clusters() -> None:
    scene = seen()
    text = scene.client.get("/metrics").text
    families = list(text_string_to_metric_families(text))
    names = [each.name for each in families]
    assert len(names) == len(set(names))
    assert text.count("# TYPE kafka_brokers ") == 1
    for family in families:
        assert {each.labels["cluster"] for each in family.samples} <= set(NAMES)
    brokers = {
        each.labels["cluster"]: each.value
        for family in families
        for each in family.samples
        if each.name == "kafka_brokers"
    }
    assert brokers == dict.fromkeys(NAMES, 2)
    later = scene.client.get("/metrics", headers={"Accept": "application/openmetrics-text"}).text
    assert later.count("# EOF") == 1
    assert {each.name for each in open_metrics(later)} == set(names)
    own = scene.client.get(f"{PROD}/metrics").text
    assert 'cluster="prod"' in own and "test.2" not in own


def test_metrics_of_a_console_with_one_cluster_have_no_such_label() -> None:
    alone = FrontScene(clusters=()).prod
    alone.site.name = ""
    alone.look()
    assert "cluster=" not in alone.client.get("/metrics").text


def test_metrics_while_a_cluster_is_away() -> None:
    """The series of the others go on, with one head for each family."""
    for away in range(2):
        scene = FrontScene()
        assert scene.client.get("/metrics").status_code == 503
        scene.scenes[away].session.down = True
        scene.look()
        text = scene.client.get("/metrics").text
        families = {each.name: each.samples for each in text_string_to_metric_families(text)}
        sight = {s.labels["cluster"]: s.value for s in families["kafka_console_cluster_in_sight"]}
        assert sight == {NAMES[away]: 0, NAMES[1 - away]: 1}
        assert [s.labels["cluster"] for s in families["kafka_brokers"]] == [NAMES[1 - away]]
        assert len(re.findall(r"# TYPE (\S+)", text)) == len(families)


def test_health_tells_of_each_cluster() -> None:
    scene = FrontScene()
    assert scene.get("/health/live").json == {"status": "live"}
    answer = scene.get("/health/ready")
    assert (answer.status_code, answer.json and answer.json["status"]) == (503, "not ready")
    scene.test.session.down = True
    scene.look()
    answer = scene.get("/health/ready")
    assert answer.status_code == 200
    assert answer.json == {
        "status": "ready",
        "clusters": {
            "prod": {"status": "ready"},
            "test.2": {"status": "not ready", "reason": "ZooKeeper does not answer"},
        },
    }
    assert scene.get(f"{PROD}/health/ready").status_code == 200
    assert scene.get("/c/test.2/health/ready").status_code == 503


def test_a_cluster_that_is_away_breaks_no_other_page() -> None:
    scene = FrontScene()
    scene.test.session.down = True
    scene.look()
    page = text_of(scene.get("/").text)
    assert (
        "The cluster is degraded. It cannot be seen: ZooKeeper does not answer. - - - not" in page
    )
    away = scene.get("/c/test.2/")
    assert away.status_code == 503
    assert "has not been seen yet: ZooKeeper does not answer" in text_of(away.text)
    assert scene.get(f"{PROD}/topics/t").status_code == 200


def test_the_lists_ask_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that does not answer would keep them waiting."""
    scene = seen()
    calls: list[str] = []
    for each in scene.scenes:
        monkeypatch.setattr(each.session, "before", lambda call, path: calls.append(path))
        each.cluster.down = {9091, 9092}
    for path in ("/", "/metrics", "/health/ready"):
        for accept in ("text/html", "application/json", "*/*"):
            assert scene.get(path, accept).status_code == 200
    assert calls == []


def test_one_login_for_all_pages() -> None:
    scene = FrontScene({"a": "ann:reader"})
    scene.look()
    for path in ("/", "/metrics", "/none", "/c/none/", PROD, f"{PROD}/", f"{PROD}/metrics"):
        answer = scene.get(path)
        assert answer.status_code == 401, path
        assert answer.headers["WWW-Authenticate"].startswith('Basic realm="kafka08 console"')
    for path in ("/health/live", "/static/console.css", f"{PROD}/static/console.css"):
        assert scene.get(path).status_code == 200
    answer = scene.get("/", auth=("ann", "secret"))
    assert answer.status_code == 200
    assert "ann" in text_of(answer.text)
    assert scene.get(f"{PROD}/create", auth=("ann", "secret")).status_code == 403
    assert scene.prod.runtime.slept == []
    assert scene.get("/", auth=("ann", "wrong")).status_code == 401
    assert scene.prod.runtime.slept == [1.0]


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        ("/topics", 404, "Not Found"),
        ("/c/none/", 404, "There is no cluster none."),
        ("/c/none/topics", 404, "There is no cluster none."),
        ("/c/none", 404, "There is no cluster none."),
        ("/c/", 404, "Not Found"),
        ("/c/%3Cb%3E/", 404, "There is no cluster"),
        ("/static/none", 404, "There is no such file."),
    ],
)
def test_paths_that_are_not_there(path: str, code: int, text: str) -> None:
    scene = seen()
    page = scene.get(path)
    assert page.status_code == code
    assert text in text_of(page.text)
    assert "<b>" not in page.text
    assert scene.get(path, "application/json").json is not None
    assert text in scene.get(path, "*/*").text


def test_every_answer_has_the_safe_headers() -> None:
    scene = seen()
    for path in ("/", "/none", "/metrics", "/static/console.js", f"{PROD}/", PROD):
        headers = scene.get(path).headers
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
    assert scene.client.post("/").status_code == 405
    assert scene.client.head("/").status_code == 200


def test_an_error_of_our_own_shows_no_stack(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scene = seen()
    monkeypatch.setattr(scene.prod.site, "config", None)
    answer = scene.get("/")
    assert answer.status_code == 500
    assert "Traceback" not in answer.text and "AttributeError" not in answer.text
    assert "Traceback" in caplog.text
