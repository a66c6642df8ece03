//! Money and tokens of which not everything is known.

use super::*;

#[test]
fn money_that_is_known_in_part_is_a_lower_bound_in_every_view() {
    let mut world = World::running();
    world.budget(
        "{max_usd: 5, max_usd_since_progress: 4, per_peer: {claude: {max_usd: 3}, codex: {max_usd: 3}}}",
    );
    let rows = |world: &World| -> Vec<(String, Value, bool)> {
        let json: Value = world.json();
        let rows = json["loop"]["value"]["budget"]["rows"].as_array().unwrap().clone();
        let money = rows.into_iter().filter(|row| row["unit"] == "usd");
        money
            .map(|row| {
                let key = row["key"].as_str().unwrap().to_owned();
                (key, row["spent"].clone(), row["at_least"].as_bool().unwrap())
            })
            .collect()
    };
    let of = |key: &str, spent: Value, least| (key.to_owned(), spent, least);
    assert_eq!(rows(&world)[0], of("max_usd", 0.0.into(), false), "nothing was spent, and that is known");
    world.tick(1, "codex", |tick| tick.exit.usage.usd = None);
    assert_eq!(
        rows(&world),
        [
            of("max_usd", Value::Null, true),
            of("max_usd_since_progress", Value::Null, true),
            of("per_peer.claude.max_usd", 0.0.into(), false),
            of("per_peer.codex.max_usd", Value::Null, true),
        ]
    );
    assert!(!world.text().contains("$0.00  of $5.00"), "{}", world.text());
    // A turn that was ended before it gave its own account.
    world.tick(2, "claude", |tick| tick.exit.at_least = true);
    assert_eq!(
        rows(&world),
        [
            of("max_usd", 0.5.into(), true),
            of("max_usd_since_progress", 0.5.into(), true),
            of("per_peer.claude.max_usd", 0.5.into(), true),
            of("per_peer.codex.max_usd", Value::Null, true),
        ]
    );
    let text = world.text();
    for line in [
        "money                 at least $0.50",
        "money since progress  at least $0.50",
        "money of codex        unknown",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let view = world.view();
    let peers = serde_json::to_value(&view.core.value().unwrap().peers).unwrap();
    assert_eq!((&peers[0]["usd"], &peers[0]["usd_at_least"]), (&0.5.into(), &true.into()));
    assert_eq!((&peers[1]["usd"], &peers[1]["usd_at_least"]), (&Value::Null, &true.into()));
    assert_eq!((&peers[1]["tokens"], &peers[1]["tokens_at_least"]), (&1500.into(), &false.into()));
    let report = world.report();
    let page = squeezed(&report_markdown(&report));
    for cell in [
        "| at least 1,500 tokens, at least $0.50 |",
        "| 1,500 tokens, money unknown |",
        "| 1,500 tokens, cost unknown |",
    ] {
        assert!(page.contains(cell), "{cell}: {page}");
    }
    let json: Value = serde_json::from_str(&report_json(&report)).unwrap();
    let cost = &json["history"]["value"]["cost"];
    assert_eq!((&cost["codex"]["usd"], &cost["codex"]["usd_at_least"]), (&Value::Null, &true.into()));
    assert_eq!((&cost["claude"]["usd"], &cost["claude"]["usd_at_least"]), (&0.5.into(), &true.into()));
    let ticks = &json["history"]["value"]["timeline"];
    assert_eq!((&ticks[0]["usd"], &ticks[1]["at_least"]), (&Value::Null, &true.into()));
}

#[test]
fn of_a_cost_that_is_not_known_at_all_nothing_is_a_lower_bound() {
    let mut world = World::running();
    let told = |world: &World| {
        let text = report_markdown(&world.report());
        text.lines().find(|line| line.starts_with("The cost of ")).map(str::to_owned).unwrap_or_default()
    };
    world.tick(1, "codex", |tick| tick.exit.usage = peers_model::outcome::Usage::default());
    assert_eq!(told(&world), "The cost of 1 turn is not known.");
    for cell in ["| tokens unknown, money unknown |", "| money | unknown | $5.00 |"] {
        assert!(world.page().contains(cell), "{cell}: {}", world.page());
    }
    world.tick(2, "claude", |tick| tick.exit.usage.usd = None);
    assert_eq!(told(&world), "The cost of 2 turns is not known, so tokens are at least that much.");
    world.tick(3, "claude", |_| {});
    assert_eq!(told(&world), "The cost of 2 turns is not known, so tokens and money are at least that much.");
}
