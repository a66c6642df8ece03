//! What models cost by the public price lists: a dated table, and what an operator puts over it.
//!
//! A model that the table does not name costs an unknown amount, never nothing.

use std::collections::BTreeMap;

use peers_model::Usd;
use serde::Deserialize;

use crate::event::Usage;
use crate::model::undated;

const BUILTIN: &str = include_str!("../data/prices.json");

/// The price of one model, in dollars for one million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input that neither came from a cache nor went into one.
    pub input: Usd,
    /// Input that was read from a cache; as `input` when it is left out.
    #[serde(default)]
    pub cached_input: Option<Usd>,
    /// Input that was written to a cache; as `input` when it is left out.
    #[serde(default)]
    pub cache_write: Option<Usd>,
    /// Output, reasoning included.
    pub output: Usd,
}

impl Price {
    /// What `usage` costs, rounded up to a whole micro-dollar; saturating.
    ///
    /// `None` when only a total is known: input and output have different prices.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> Option<Usd> {
        let (input, cached) = (usage.input.0, usage.cached_input.0);
        let (written, output) = (usage.cache_write.0, usage.output.0);
        if input == 0 && output == 0 && usage.total.0 > 0 {
            return None;
        }
        let parts = [
            (input.saturating_sub(cached).saturating_sub(written), self.input),
            (cached, self.cached_input.unwrap_or(self.input)),
            (written, self.cache_write.unwrap_or(self.input)),
            (output, self.output),
        ];
        let of_a_million = parts.into_iter().fold(0u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(tokens).saturating_mul(u128::from(price.as_micros())))
        });
        Some(Usd::from_micros(u64::try_from(of_a_million.div_ceil(1_000_000)).unwrap_or(u64::MAX)))
    }
}

/// A table of prices by model id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices {
    as_of: String,
    models: BTreeMap<String, Price>,
}

impl Prices {
    /// The table that comes with the program: a copy of public lists at [`Prices::as_of`].
    #[must_use]
    pub fn builtin() -> Self {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[serde(rename = "about")]
            _about: String,
            as_of: String,
            models: BTreeMap<String, Price>,
        }
        // A test reads the file. Without it every price would be unknown, which is what callers expect.
        serde_json::from_str::<File>(BUILTIN)
            .map(|File { as_of, models, .. }| Self { as_of, models })
            .unwrap_or_default()
    }

    /// The table with the operator's own entries, each in place of one of the same id.
    #[must_use]
    pub fn with(mut self, overrides: impl IntoIterator<Item = (String, Price)>) -> Self {
        self.models.extend(overrides.into_iter().map(|(id, price)| (id.to_ascii_lowercase(), price)));
        self
    }

    /// The day of the built-in copy, `YYYY-MM-DD`.
    #[must_use]
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// The price of `model`.
    ///
    /// The id as it stands comes first, then without the provider before a `/`, then without a date at
    /// its end (`-2025-08-07`, `-20250514`, `@20250514`). A version with a point (`claude-opus-4.5`)
    /// is the one with a dash. Nothing looser: `gpt-5` says nothing about `gpt-5-mini`.
    #[must_use]
    pub fn find(&self, model: &str) -> Option<&Price> {
        let id = model.trim().to_ascii_lowercase();
        self.by_id(&id).or_else(|| {
            let dashed = id.contains("claude").then(|| id.replace('.', "-"))?;
            self.by_id(&dashed)
        })
    }

    fn by_id(&self, id: &str) -> Option<&Price> {
        let names = || {
            std::iter::successors(Some(id), |name| name.split_once('/').map(|(_, model)| model))
                .filter(|name| !name.is_empty())
        };
        names()
            .find_map(|name| self.models.get(name))
            .or_else(|| names().filter_map(undated).find_map(|name| self.models.get(name)))
    }

    /// Whether the table has a price for this model.
    #[must_use]
    pub fn knows(&self, model: &str) -> bool {
        self.find(model).is_some()
    }

    /// What `usage` of `model` costs; `None` when the table does not know the model, or when `usage` is
    /// only a total.
    #[must_use]
    pub fn price(&self, model: &str, usage: &Usage) -> Option<Usd> {
        self.find(model)?.of(usage)
    }
}

#[cfg(test)]
mod tests {
    use peers_model::Tokens;
    use proptest::prelude::*;

    use super::*;

    fn usage(input: u64, cached: u64, written: u64, output: u64) -> Usage {
        Usage {
            input: Tokens(input),
            cached_input: Tokens(cached),
            cache_write: Tokens(written),
            output: Tokens(output),
            total: Tokens(input.saturating_add(output)),
            ..Usage::default()
        }
    }

    fn dollars(text: &str) -> Usd {
        Usd::from_f64(text.parse().unwrap()).unwrap()
    }

    #[test]
    fn the_built_in_table_is_read_and_dated() {
        let prices = Prices::builtin();
        assert_eq!(prices.as_of().len(), "2026-01-01".len());
        assert!(prices.models.len() > 20);
        for (id, price) in &prices.models {
            assert_eq!(*id, id.to_ascii_lowercase(), "{id} would never be found");
            let cached = price.cached_input.unwrap_or(price.input);
            assert!(cached <= price.input && price.input < price.output, "{id}");
            assert!(price.cache_write.is_none_or(|write| write >= price.input), "{id}");
            assert!(price.input > Usd::ZERO && price.output <= dollars("200"), "{id}");
            assert_eq!(undated(id), None, "{id}: the table has no dated ids");
        }
    }

    #[test]
    fn each_part_has_its_own_price() {
        let prices = Prices::builtin();
        // What Claude Code 2.1 says of the same tokens.
        assert_eq!(prices.price("claude-opus-5-5", &usage(4500, 900, 0, 240)), Some(dollars("0.01938")));
        let million = 1_000_000;
        let all = usage(3 * million, million, million, million);
        assert_eq!(prices.price("claude-opus-5-5", &all), Some(dollars("29.2")));
        assert_eq!(prices.price("gpt-5", &usage(million, 0, million, 0)), Some(dollars("1.25")));
    }

    #[test]
    fn a_part_of_a_micro_dollar_is_a_whole_one() {
        let prices = Prices::builtin();
        assert_eq!(prices.price("gpt-5-nano", &usage(1, 0, 0, 0)), Some(Usd::from_micros(1)));
        assert_eq!(prices.price("gpt-5-nano", &usage(0, 0, 0, 0)), Some(Usd::ZERO));
        assert_eq!(prices.price("gpt-5", &usage(3, 0, 0, 0)), Some(Usd::from_micros(4)), "3.75");
    }

    #[test]
    fn a_model_is_found_by_its_id_without_provider_or_date_and_by_nothing_looser() {
        let prices = Prices::builtin();
        let same = |a: &str, b: &str| prices.find(a).is_some() && prices.find(a) == prices.find(b);
        for id in [
            "openai/gpt-5",
            "openrouter/openai/gpt-5",
            "gpt-5-2025-08-07",
            "openai/gpt-5-2025-08-07",
            "GPT-5",
            " gpt-5 ",
        ] {
            assert!(same(id, "gpt-5"), "{id}");
        }
        assert!(same("claude-opus-4-20250514", "claude-opus-4"));
        assert!(same("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"));
        assert!(same("openrouter/anthropic/claude-opus-4.5", "claude-opus-4-5"));
        for id in [
            "",
            "/",
            "gpt",
            "gpt-",
            "gpt-5-",
            "gpt-5-turbo",
            "gpt-5-2025",
            "gpt-5-2025-13-01",
            "gpt-5-99999999",
            "gpt-5:free",
            "xgpt-5",
            "claude",
            "opus",
            "fake-model",
        ] {
            assert_eq!(prices.find(id), None, "{id:?}");
            assert_eq!(prices.price(id, &usage(1, 0, 0, 1)), None, "unknown is never zero");
        }
    }

    #[test]
    fn an_entry_of_the_operator_wins() {
        let own = Price { input: dollars("7"), cached_input: None, cache_write: None, output: dollars("9") };
        let free = Price { input: Usd::ZERO, output: Usd::ZERO, ..own };
        let prices = Prices::builtin().with([
            ("gpt-5".to_owned(), own),
            ("azure/GPT-4.1".to_owned(), own),
            ("local".to_owned(), free),
        ]);
        for id in ["gpt-5", "openai/gpt-5-2025-08-07", "azure/gpt-4.1", "azure/gpt-4.1-2025-04-14"] {
            assert_eq!(prices.find(id), Some(&own), "{id}");
        }
        assert_ne!(prices.find("gpt-4.1"), Some(&own), "only behind that provider");
        assert_eq!(prices.price("local", &usage(5, 0, 0, 5)), Some(Usd::ZERO), "zero that was said is zero");
        assert_eq!(prices.as_of(), Prices::builtin().as_of());
    }

    #[test]
    fn a_total_alone_has_no_price() {
        let total = Usage { total: Tokens(500), ..Usage::default() };
        assert_eq!(Prices::builtin().price("gpt-5", &total), None);
    }

    #[test]
    fn a_price_with_an_unknown_field_is_refused() {
        let read = |text: &str| serde_json::from_str::<Price>(text).map_err(|error| error.to_string());
        assert!(read(r#"{"input": 1, "output": 2}"#).is_ok());
        assert!(read(r#"{"input": 1, "output": 2, "cached": 1}"#).unwrap_err().contains("unknown field"));
        assert!(read(r#"{"input": 1}"#).is_err());
        assert!(read(r#"{"input": -1, "output": 2}"#).is_err());
    }

    proptest! {
        #[test]
        fn any_usage_has_a_price_that_grows_with_it(
            a in any::<[u64; 4]>(), more in 0u64..1_000_000, id in "[a-z0-9/@.-]{0,40}",
        ) {
            let prices = Prices::builtin();
            let one = prices.price("gpt-5.6-sol", &usage(a[0], a[1], a[2], a[3])).unwrap();
            let two = prices.price("gpt-5.6-sol", &usage(a[0], a[1], a[2], a[3].saturating_add(more))).unwrap();
            prop_assert!(one <= two);
            let _: Option<&Price> = prices.find(&id);
        }
    }
}
