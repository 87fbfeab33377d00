"""What operators do to alerts together, in a real browser: take over, snooze, mark repeats, note, label several."""

import msgspec
from msgspec import structs
from playwright.sync_api import Page, expect

from models.events import AlertLabelled, AlertTriaged, Harm
from tests.browser.axe import see_no_violation
from tests.browser.live_server import LiveServer
from tests.browser.made_up import alert, session

ROWS = ".rows .row"


def test_several_alerts_are_handled_at_once(page: Page, server: LiveServer) -> None:
    """What is done to a selected one is done to all that are selected; one that rests waits for nobody."""
    rows = [session(number, risk=0.9 - number / 5, app="support") for number in (1, 2, 3)]
    alerts = [alert(number, row) for number, row in zip((3, 2, 1), rows, strict=True)]
    server.push(rows, alerts)
    page.goto(f"{server.url}#/alerts")
    expect(page.locator(ROWS)).to_have_count(3)
    for key in ("x", "j", "x", "f"):
        page.keyboard.press(key)
    expect(page.get_by_role("dialog")).to_contain_text("2 selected alerts")
    see_no_violation(page, "a dialog about several")
    page.keyboard.type("one campaign")
    page.keyboard.press("Enter")
    expect(page.locator(f"{ROWS} .status", has_text="firing, false")).to_have_count(2)

    page.keyboard.press("Home")
    page.get_by_role("button", name="Snooze").click()
    page.get_by_label("For").select_option("240")
    page.get_by_role("dialog").get_by_role("button", name="Snooze").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    server.push(alerts=[resting := structs.replace(alerts[0], cause="snoozed", snoozed_until=alerts[0].timestamp)])
    expect(page.locator("#waiting")).to_have_text("2")
    expect(page.locator(f"{ROWS} .status", has_text="snoozed")).to_have_count(1)
    server.push(alerts=[structs.replace(resting, cause="woken", snoozed_until=None, assignee="bob")])
    expect(page.locator("#waiting")).to_have_text("3")
    page.keyboard.press("Home")
    expect(page.locator(".alert-card")).to_contain_text("bob")

    page.keyboard.press("d")
    page.get_by_role("dialog").get_by_role("button", name="Mark").click()
    server.push(alerts=[structs.replace(alerts[0], cause="duplicate", duplicate_of="alert-0002")])
    expect(page.locator(f"{ROWS} .status", has_text="repeats another")).to_have_count(1)
    page.keyboard.press("Home")
    page.keyboard.press("m")
    expect(page.locator(f"{ROWS} .status", has_text="assigned …")).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("n")
    page.keyboard.type("asked the desk")
    page.keyboard.press("Enter")
    expect(page.locator(f"{ROWS} .status", has_text="noted …")).to_have_count(1)
    page.keyboard.press("i")
    expect(page.get_by_role("dialog")).to_contain_text("Nothing like it is indexed.")

    said = [msgspec.json.decode(each.value or b"", type=AlertLabelled | AlertTriaged) for _, each in server.log.records]
    labels = [each for each in said if isinstance(each, AlertLabelled)]
    triaged = [each for each in said if isinstance(each, AlertTriaged)]
    assert {("alert-0003", False, "one campaign"), ("alert-0002", False, "one campaign")} == {
        (each.alert_id, each.escalating, each.reason) for each in labels
    }
    assert ["alert-0003", "alert-0003"] == [each.alert_id for each in triaged[:2]]
    assert triaged[0].snoozed_until is not None
    assert (triaged[1].duplicate_of in {"alert-0001", "alert-0002"}, triaged[2].assignee) == (True, "operator")
    assert ("asked the desk", "operator") == (triaged[3].note, triaged[3].by)


def test_a_search_is_saved_for_everybody_of_an_app(page: Page, server: LiveServer) -> None:
    """With its filters, which an address keeps too; whoever sees the app's alerts finds it, until it is let go."""
    rows = [session(number, risk=0.9, app=app) for number, app in ((1, "support"), (2, "support"), (3, "tutor"))]
    alerts = [alert(number, row) for number, row in zip((1, 2, 3), rows, strict=True)]
    server.push(rows, [structs.replace(alerts[0], category=Harm.FRAUD), *alerts[1:]])
    page.goto(f"{server.url}#/alerts")
    expect(page.locator(ROWS)).to_have_count(3)
    page.get_by_role("button", name="Save …").click()
    expect(page.locator("#notice")).to_contain_text("Choose an app first")
    page.get_by_role("combobox", name="App").select_option("support")
    expect(page.locator(ROWS)).to_have_count(2)
    page.get_by_label("Harm").select_option("fraud")
    expect(page.locator(ROWS)).to_have_count(1)
    page.get_by_role("button", name="Save …").click()
    see_no_violation(page, "a dialog about a search")
    page.keyboard.type("support fraud")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Saved").locator("option")).to_have_text(["none", "support fraud (support)"])

    page.goto(f"{server.url}#/sessions")
    page.goto(f"{server.url}#/alerts")
    expect(page.locator(ROWS)).to_have_count(3)
    expect(page.get_by_label("Saved").locator("option")).to_have_count(2)
    page.get_by_label("Saved").select_option("support fraud (support)")
    expect(page.locator(ROWS)).to_have_count(1)
    assert "app_id=support" in page.url
    page.get_by_role("button", name="Let go").click()
    expect(page.get_by_label("Saved").locator("option")).to_have_text(["none"])
