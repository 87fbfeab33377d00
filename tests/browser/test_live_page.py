"""The live page in a real browser, on the real routes: what operators see, do by keyboard, and are not shown."""

import re

import msgspec
import pytest
from msgspec import structs
from playwright.sync_api import Page, ViewportSize, expect

from models.events import AlertAcknowledged, AlertChanged, AlertLabelled, SessionName, TopicAdjusted, TurnCorrected
from models.risk.telling import sentence
from streams.api.live.messages import Reading
from streams.api.live.service import CONTENT_SECURITY_POLICY
from tests.browser.axe import see_no_violation
from tests.browser.live_server import LiveServer
from tests.browser.made_up import HOSTILE, acknowledged, alert, resolved, session
from tests.browser.tab import Tab
from tests.support.live_served import live_token

HOSTILE_ID = f"chat/2026?x=1#{HOSTILE}"
ROWS = ".rows .row"
CHOSEN = f'{ROWS}[aria-selected="true"]'
WIDE: ViewportSize = {"width": 1280, "height": 800}
NARROW: ViewportSize = {"width": 390, "height": 844}
VIEWS = ("#/sessions", "#/session/session-00001", "#/alerts", "#/search", "#/health")


def ids(page: Page) -> list[str]:
    """Session ids from top to bottom, of the rows in sight, once what has arrived is drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    rows = page.locator(ROWS).evaluate_all(
        """rows => rows.map((row) => [
            new DOMMatrix(getComputedStyle(row).transform).f, row.querySelector(".id").textContent])"""
    )
    return [name for _, name in sorted(rows)]


def _colour(page: Page, selector: str) -> str:
    """Of the first one's text."""
    return str(page.locator(selector).first.evaluate("(node) => getComputedStyle(node).color"))


def three_with_alerts(server: LiveServer) -> list[AlertChanged]:
    """Three sessions, and an alert on each: a critical one, the older of two warnings, and the younger."""
    rows = [session(number, risk=0.9 - number / 5) for number in (1, 2, 3)]
    alerts = [alert(number, row) for number, row in zip((3, 2, 1), rows, strict=True)]
    server.push(rows, alerts)
    return alerts


def test_sessions_are_sorted_filtered_and_kept_in_their_place(page: Page, server: LiveServer) -> None:
    """By risk at first, by what is chosen then; filters stand in the address; the selection goes with its session."""
    server.push([session(number, risk=number / 10, turns=100 - number, app="support") for number in range(1, 9)])
    server.push([session(50, session_id="other", risk=0.05, app="tutor")])
    page.goto(server.url)

    expect(page.locator(ROWS)).to_have_count(9)
    assert ids(page)[:2] == ["session-00008", "session-00007"]
    row = page.locator(ROWS, has_text="session-00008")
    expect(row.locator(".risk .number")).to_have_text("0.80")
    expect(row.locator(".mode")).to_contain_text("critical")
    page.get_by_role("button", name="Turns").click()
    assert ids(page)[-1] == "session-00008"
    page.get_by_role("combobox", name="App").select_option("tutor")
    assert ids(page) == ["other"]
    assert page.url.endswith("#/sessions?app=tutor&sort=turns")
    page.goto(f"{server.url}#/sessions?id=0000")
    page.get_by_label("User", exact=True).fill("USER-7")
    assert ids(page) == ["session-00007"]
    expect(page.locator(f"{ROWS} .user")).to_have_text("user-7")
    page.reload()
    expect(page.locator(ROWS)).to_have_count(1)  # the filter stands in the address
    page.get_by_label("User", exact=True).fill("")
    expect(page.locator(ROWS)).to_have_count(8)
    page.get_by_role("grid").focus()
    for key in ("Home", "j", "ArrowDown"):
        page.keyboard.press(key)
    expect(page.locator(CHOSEN)).to_contain_text("session-00006")
    server.push([session(6, risk=0.99, app="support")])
    expect(page.locator(CHOSEN).locator(".risk .number")).to_have_text("0.99")
    expect(page.locator(CHOSEN)).to_have_attribute("aria-rowindex", "2")  # the order is made anew, and it went along
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("session-00006")


@pytest.mark.parametrize(
    ("reading", "missing", "command"),
    [
        (Reading(kafka="away"), "Kafka does not answer", "turntide kafka start"),
        (Reading(kafka="without_topics"), "Kafka has no topics of Turntide", "turntide topics apply"),
        (Reading(kafka="read"), "No turn has been read yet", "turntide demo"),
    ],
)
def test_the_first_page_says_what_is_missing(
    page: Page, server: LiveServer, reading: Reading, missing: str, command: str
) -> None:
    """Of broker, topics, roles and turns the first that is not there, with the command for it; a session ends it."""
    server.reads(reading)
    page.goto(server.url)
    guide = page.get_by_role("region", name="What is missing")
    expect(guide.get_by_text(missing)).to_be_visible()
    expect(guide.locator("li code").first).to_have_text(command)
    see_no_violation(page, missing)
    server.reads(Reading(kafka="read", turns=3))
    expect(guide.get_by_text("3 records of turns read")).to_be_visible()
    server.push([session(1, turns=1, points=1)])
    expect(guide).to_be_hidden()
    expect(page.locator(ROWS)).to_have_count(1)


def test_pause_holds_the_list_and_letters_may_be_switched_off(page: Page, server: LiveServer) -> None:
    """What arrives while it is paused shows afterwards; gone sessions leave it."""
    server.push([session(1, risk=0.2), session(2, risk=0.1)])
    page.goto(f"{server.url}#/sessions?id=nothing")
    page.get_by_role("button", name="Show all").click()
    expect(page.locator(ROWS)).to_have_count(2)
    page.keyboard.press("p")
    gone = [SessionName("companion", "session-00002")]
    server.push([session(3, risk=0.5), changed := session(1, risk=0.9)], [alert(1, changed)], gone)
    expect(page.locator("#waiting")).to_have_text("1")
    expect(page.locator(".counted")).to_have_text("2 sessions, paused")
    expect(page.locator(ROWS)).to_have_count(2)
    page.keyboard.press("p")
    expect(page.locator(ROWS)).to_have_count(2)
    expect(page.locator(ROWS, has_text="session-00001").locator(".risk .number")).to_have_text("0.90")
    assert ids(page) == ["session-00001", "session-00003"]
    page.keyboard.press("?")
    page.get_by_label("Letters are commands").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("p")
    expect(page.get_by_role("button", name="Pause")).to_have_attribute("aria-pressed", "false")


def test_ten_thousand_sessions_and_sixty_updates_a_second(page: Page, server: LiveServer) -> None:
    """Few rows are in the document, however far one scrolls; every update has arrived in the end."""
    server.push([session(number) for number in range(10_000)])
    page.goto(server.url)
    expect(page.locator(".counted")).to_have_text("10,000 sessions")
    for first in range(0, 1_200, 60):
        server.push([session(n, risk=0.999 - n / 20_000, turns=1_000 + n) for n in range(first, first + 60)])
    page.get_by_label("Session", exact=True).fill("session-01199")
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator(f"{ROWS} .turns")).to_have_text("2,199")
    page.get_by_label("Session", exact=True).fill("")
    expect(page.locator(".counted")).to_have_text("10,000 sessions")
    expect(page.locator(ROWS, has_text="session-00000")).to_be_visible()
    assert ids(page)[:30] == [f"session-{number:05}" for number in range(30)]
    page.get_by_role("grid").focus()
    page.keyboard.press("End")
    expect(page.locator(f'{ROWS}[aria-rowindex="10001"]')).to_be_visible()
    assert page.locator(ROWS).count() < 100


def test_text_is_masked_until_it_is_asked_for(tab: Tab, server: LiveServer) -> None:
    """Nothing that was said is fetched before; then it shows as text, whatever it holds, and can be hidden again."""
    page, row = tab.page, session(1, session_id=HOSTILE_ID)
    server.remember(row)
    made = alert(3, row)
    server.push(alerts=[made])
    page.goto(server.url)
    page.locator(ROWS).get_by_text(HOSTILE_ID).click()

    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE_ID)
    expect(page.get_by_role("img", name="Risk over 42 turns")).to_be_visible()
    expect(page.locator(".alert-card .reason")).to_have_text(sentence(made))
    expect(page.locator(".bars .name")).to_have_text(["level"])
    expect(page.locator(f"{ROWS} .said").first).to_have_text("masked")
    assert not any("text" in asked for asked in tab.asked)
    page.get_by_role("button", name="Turn 27, evidence").click()
    expect(page.get_by_role("region", name="Selected turn")).to_contain_text("The text is masked.")
    page.get_by_role("button", name="Show text").click()
    expect(page.get_by_role("region", name="Selected turn")).to_contain_text(f"What was said in turn 27. {HOSTILE}")
    expect(page.get_by_label("Worst turn")).to_have_text(f"What was said in turn 12. {HOSTILE}")
    expect(page.get_by_role("region", name="Topics")).to_contain_text(f"{HOSTILE} title")
    expect(page.get_by_role("region", name="Facts")).to_contain_text(f"{HOSTILE} value")
    expect(page.get_by_role("region", name="Episodes")).to_contain_text(f"{HOSTILE} summary")
    page.keyboard.press("x")
    expect(page.locator("main")).not_to_contain_text("What was said")
    expect(page.locator("main")).not_to_contain_text(f"{HOSTILE} title")
    page.goto(f"{server.url}#/search")
    page.get_by_label("Words").fill("what was said in turn 27")
    page.keyboard.press("Enter")
    assert page.url.endswith("#/search")
    expect(page.locator(".hits .text").first).to_have_text("masked")
    assert not any("/search" in asked and "text=true" in asked for asked in tab.asked)
    page.get_by_role("button", name="Show text").click()
    expect(page.locator(".hits .text").first).to_have_text(f"What was said in turn 27. {HOSTILE}")
    page.get_by_role("button", name="Hide text").click()
    expect(page.locator("main")).not_to_contain_text("What was said")
    page.locator(".hits a").first.click()
    expect(page.locator(f"{CHOSEN} .turn")).to_have_text("27")
    page.keyboard.press("x")
    expect(page.locator(f"{CHOSEN} .said")).to_contain_text("turn 27.")  # rows became higher: it is in sight still
    assert page.evaluate("window.injected") is None
    assert page.locator("main img, main script").count() == 0


def test_a_turn_is_put_right_and_a_topic_rated(tab: Tab, server: LiveServer) -> None:
    """By buttons that are there once the text is; what is written is under the session's key, by the token's holder."""
    page, row = tab.page, session(1)
    server.remember(row)
    page.goto(server.url)
    page.locator(ROWS).get_by_text("session-00001").click()
    page.locator(f"{ROWS} .turn").first.click()
    expect(page.get_by_role("button", name="Correct the text")).to_have_count(0)
    page.get_by_role("button", name="Show text").click()
    page.get_by_role("button", name="Correct the text").click()
    page.get_by_label("Text", exact=True).fill("What should have been said.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The new text is in the log")).to_be_attached()
    page.get_by_role("button", name="Rate or tag").first.click()
    page.get_by_label("Importance, 0 to 1").fill("0.9")
    page.get_by_label("Tags").fill("boats, sails")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("It is in the log")).to_be_attached()
    (_, first), (_, second) = server.log.records
    right = msgspec.json.decode(first.value or b"", type=TurnCorrected)
    rated = msgspec.json.decode(second.value or b"", type=TopicAdjusted)

    assert (right.session_id, right.content, right.by) == ("session-00001", "What should have been said.", "operator")
    assert (rated.importance, rated.tags) == (0.9, ["boats", "sails"])


def test_without_the_permission_no_text_is_offered(tab: Tab, server: LiveServer) -> None:
    """A token without `text` sees numbers only."""
    page = tab.page
    tab.begin(server.url, "blind")
    server.push([session(1)])
    page.goto(f"{server.url}#/session/session-00001")
    expect(page.get_by_text("this token may not read text")).to_be_visible()
    expect(page.get_by_role("button", name="Show text")).to_be_hidden()
    page.keyboard.press("x")
    page.keyboard.press("3")
    expect(page.get_by_text("This token may not read text, and a search shows it.")).to_be_visible()
    assert not any("text" in asked for asked in tab.asked)


def test_alerts_are_acknowledged_and_labelled_by_keyboard(page: Page, server: LiveServer) -> None:
    """The gravest comes first; an acknowledgement is said to be under way until its session has folded it."""
    critical, _, _ = three_with_alerts(server)
    page.goto(f"{server.url}#/alerts")
    expect(page.locator(ROWS)).to_have_count(3)
    assert ids(page) == ["session-00001", "session-00002", "session-00003"]
    expect(page.locator("#waiting")).to_have_text("3")
    page.keyboard.press("a")
    expect(page.locator(f"{ROWS} .status").first).to_have_text("acknowledged …")
    server.push(alerts=[acknowledged(critical)])
    expect(page.locator("#waiting")).to_have_text("2")
    assert ids(page)[-1] == "session-00001"  # those that fire come first
    loud = ("session-00002", "session-00001")
    colours = [_colour(page, f"{ROWS}:has-text('{name}') .severity .mark") for name in loud]
    assert colours[1] == _colour(page, ".cell.app") != colours[0]  # one that somebody looks at is calm

    page.keyboard.press("Home")
    page.keyboard.press("f")
    expect(page.get_by_role("dialog")).to_contain_text("Label as a false alert?")
    page.keyboard.type("known tester: j k a")
    page.keyboard.press("Enter")
    expect(page.locator(f"{CHOSEN} .status")).to_have_text("firing, false")
    page.keyboard.press("t")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)

    server.log.answers = False
    page.keyboard.press("a")
    expect(page.get_by_role("alert").filter(has_text="Kafka did not confirm the record")).to_be_visible()
    expect(page.locator(f"{CHOSEN} .status")).to_have_text("firing, false")
    first, second = (record.value or b"" for _, record in server.log.records)
    seen = msgspec.json.decode(first, type=AlertAcknowledged)
    label = msgspec.json.decode(second, type=AlertLabelled)
    assert (seen.session_id, seen.alert_id, seen.by) == ("session-00001", "alert-0003", "operator")
    assert (label.session_id, label.alert_id) == ("session-00002", "alert-0002")
    assert (label.escalating, label.reason) == (False, "known tester: j k a")


def test_a_new_alert_is_told_and_stands_in_the_queue(page: Page, server: LiveServer) -> None:
    """Also to those who hear the page."""
    server.push([session(1)])
    page.goto(server.url)
    expect(page.locator(ROWS)).to_have_count(1)
    made = alert(3, session(1), evidence=[], reason=HOSTILE)
    server.push(alerts=[made])
    expect(page.get_by_role("status").first).to_have_text(f"New critical alert: {sentence(made)}")
    page.keyboard.press("2")
    expect(page.locator(f"{ROWS} .reason")).to_have_attribute("title", sentence(made))
    who = f"Session session-00001 (user {made.user_id}, app {made.app_id}) h"
    expect(page.locator(f"{ROWS} .reason")).to_have_text(
        sentence(made).replace(who, "H").replace("; probability 0.91", "")
    )


def test_a_tab_that_nobody_looks_at_counts_alerts_in_its_title(tab: Tab, server: LiveServer) -> None:
    """Browsers draw no frames for it."""
    page = tab.page
    page.goto(f"{server.url}#/sessions")
    expect(page).to_have_title("Sessions – Turntide")
    page.evaluate("window.requestAnimationFrame = () => 0")
    firing = three_with_alerts(server)
    expect(page).to_have_title("(3) Sessions – Turntide")
    server.push(alerts=[resolved(each) for each in firing])
    expect(page).to_have_title("Sessions – Turntide")


def test_it_comes_back_after_the_server_was_away(page: Page, server: LiveServer) -> None:
    """Says since when it is stale; what went meanwhile goes, what came is there."""
    server.push([session(1), session(2)])
    page.goto(server.url)
    expect(page.locator("#link")).to_have_text("Live")
    expect(page.get_by_role("link", name="Health")).to_contain_text("2")  # of ROLES, one is not ready and one is away
    server.stop()
    expect(page.locator("#link")).to_contain_text(re.compile("Reconnecting.*stale since"))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    server.push([session(3)], gone=[SessionName("tutor", "session-00001")])
    server.start()
    expect(page.locator("#link")).to_have_text("Live", timeout=15_000)
    expect(page.locator(ROWS, has_text="session-00003")).to_be_visible()
    assert set(ids(page)) == {"session-00002", "session-00003"}


def test_one_session_id_in_two_apps_is_two_sessions(page: Page, server: LiveServer) -> None:
    """Two rows, each with its own view and alert; when one goes the other stays. An old address asks whose it means."""
    mine, other = [session(n, session_id="chat-1", app=app, risk=0.5) for n, app in enumerate(("support", "tutor"))]
    for each in (mine, other):
        server.remember(each)
    made = alert(2, other)
    server.push([], [made])
    page.goto(server.url)
    expect(page.locator(ROWS)).to_have_count(2)
    page.locator(ROWS, has_text="support").get_by_role("link").click()
    assert page.url.endswith("#/session/chat-1?app=support")
    expect(page.get_by_role("img", name="Risk over 42 turns")).to_be_visible()
    expect(page.locator(".alert-card")).to_have_count(0)
    page.goto(f"{server.url}#/alerts")
    page.locator(ROWS).get_by_role("link").click()
    assert page.url.endswith("#/session/chat-1?app=tutor")
    expect(page.locator(".alert-card .reason")).to_have_text(sentence(made))
    page.goto(f"{server.url}#/session/chat-1")
    expect(page.get_by_text("several apps have a session of this id")).to_be_visible()
    page.goto(f"{server.url}#/sessions")
    server.push(gone=[SessionName("tutor", "chat-1")])

    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator(f"{ROWS} .app")).to_have_text("support")


def test_a_token_is_asked_for_and_stays_out_of_addresses(tab: Tab, server: LiveServer) -> None:
    """One in the address is refused; one that is typed lasts as long as the tab and shows its apps only."""
    page, token = tab.page, live_token("tutor")
    tab.begin(server.url, None)
    server.push([session(1, app="tutor"), session(2, app="support")])
    refused = page.goto(f"{server.url}?token={token}")
    assert refused
    assert refused.status == 400
    page.goto(f"{server.url}#access_token={token}")
    expect(page.get_by_text("The address held a token. It was not used")).to_be_visible()
    assert page.url == server.url
    for typed, answer in (
        ("wrong-token", "This token is not known."),
        (live_token("reader"), "This page takes an operator's token; this one is a reader's."),
    ):
        page.get_by_label("Token").fill(typed)
        page.keyboard.press("Enter")
        expect(page.get_by_text(answer)).to_be_visible()
    page.get_by_label("Token").fill(token)
    page.keyboard.press("Enter")
    expect(page.locator(ROWS)).to_have_count(1)
    page.reload()
    expect(page.locator(ROWS)).to_have_count(1)
    assert ids(page) == ["session-00001"]
    assert [each for each in tab.asked if token in each] == [f"{server.url}?token={token}"]
    server.stop()
    server.start(tokens=["operator"])
    expect(page.get_by_text("The token is not valid any more.")).to_be_visible(timeout=15_000)
    assert page.evaluate("sessionStorage.length") == 0
    assert page.locator(ROWS).count() == 0
    server.stop()
    server.start()


def test_every_view_is_accessible_and_fits_a_telephone(page: Page, server: LiveServer) -> None:
    """Nothing is found by axe in either scheme; 390 px take no sideways scrolling, whatever the ids are."""
    alerts = three_with_alerts(server)
    server.remember(session(1, risk=0.7))
    long = session(9, session_id="w" * 256)
    server.push([long], [structs.replace(alerts[0], alert_id="w" * 256, session_id=long.session_id)])
    page.goto(server.url)
    for view in VIEWS:
        page.goto(f"{server.url}{view}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator(":text('Loading …'):visible")).to_have_count(0)
        if "session/" in view:
            expect(page.get_by_role("region", name="Topics")).to_be_visible()
            page.keyboard.press("j")
        see_no_violation(page, view)
        page.set_viewport_size(NARROW)
        if "session/" in view:  # what is to be done stands before what is to be read
            places = [page.locator(each).first.bounding_box() for each in (".alert-card .buttons", ".turns-panel")]
            tops = [place["y"] for place in places if place]
            assert tops[0] < tops[1]
            see_no_violation(page, f"{view}, narrow")
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], view
        assert page.evaluate("document.querySelector('main').scrollWidth") <= NARROW["width"], view
        page.set_viewport_size(WIDE)
    page.goto(f"{server.url}#/alerts")
    expect(page.locator(CHOSEN)).to_be_visible()
    page.keyboard.press("t")
    expect(page.get_by_role("dialog")).to_be_visible()
    see_no_violation(page, "a dialog")


def test_the_scheme_can_be_chosen_and_the_content_skipped_to(tab: Tab, server: LiveServer) -> None:
    """By keyboard alone; the choice lasts, and nothing comes from elsewhere."""
    page = tab.page
    answer = page.goto(server.url)
    assert answer
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    for _ in range(2):
        page.get_by_role("button", name="Colours").press("Enter")
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    assert all(asked.startswith(server.url.removesuffix("live/")) for asked in tab.asked)
    assert page.evaluate("() => { try { document.body.innerHTML = 'x'; return false } catch { return true } }")
    assert tab.wrong.pop().startswith("This document requires 'TrustedHTML'")
