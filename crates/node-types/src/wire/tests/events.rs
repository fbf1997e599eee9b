//! The parameters of event streams, and the ids at which they resume.

use crate::wire::{AddressFilter, Data, EventData, EventsInput, Log, Quantity, RequestLimits, TextError, TopicFilter};
use crate::{BlockNumberOrTag, ChainEventId, EventId, H256};
use proptest::prelude::*;

const HASH: &str = "0x0101010101010101010101010101010101010101010101010101010101010101";
const ADDRESS: &str = "0x0202020202020202020202020202020202020202";

fn hash() -> H256 {
    H256::repeat_byte(1)
}

/// Decodes parameters; on failure returns the locations of the faults.
fn read(query: &[(&str, &str)], header: Option<&str>) -> Result<EventsInput, Vec<String>> {
    let value = |name: &str| query.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let input = EventsInput::from_query(value, header, RequestLimits::default());
    input.map_err(|faults| faults.into_iter().map(|fault| fault.location).collect())
}

fn chain_id(log_index: Option<u64>) -> ChainEventId {
    ChainEventId { block: hash(), log_index }
}

#[test]
fn parameters_select_the_events() {
    let logs = |topics: &[&[H256]], from_block, after| EventsInput::Logs {
        address: AddressFilter::default(),
        topics: topics.iter().map(|words| TopicFilter(words.to_vec())).collect(),
        from_block,
        after,
    };
    let both = format!("{HASH}, {HASH}");
    let with_index = format!("{HASH}:7");
    let cases = [
        (&[][..], None, logs(&[], None, None)),
        (&[("Stream", "logs"), ("Address", ""), ("Topic3", ""), ("LastEventId", "")], Some(""), logs(&[], None, None)),
        (&[("Topic0", &both)], None, logs(&[&[hash(), hash()]], None, None)),
        (&[("Topic1", HASH), ("Topic3", "")], None, logs(&[&[], &[hash()]], None, None)),
        (&[("FromBlock", "7")], None, logs(&[], Some(BlockNumberOrTag::Number(7)), None)),
        (&[("LastEventId", HASH)], None, logs(&[], None, Some(chain_id(None)))),
        (&[("LastEventId", HASH)], Some(&with_index), logs(&[], None, Some(chain_id(Some(7))))),
        (
            &[("Stream", "blocks"), ("FromBlock", "earliest")],
            Some(HASH),
            EventsInput::Blocks { from_block: Some(BlockNumberOrTag::Earliest), after: Some(Data(hash())) },
        ),
        (
            &[("Stream", "pendingTransactions"), ("LastEventId", "12")],
            None,
            EventsInput::PendingTransactions { after: Some(Quantity(12)) },
        ),
    ];
    for (query, header, expected) in cases {
        assert_eq!(read(query, header), Ok(expected), "{query:?} {header:?}");
    }
    let addressed = read(&[("Address", &format!("{ADDRESS},{ADDRESS}"))], None);
    assert!(matches!(addressed, Ok(EventsInput::Logs { address, .. }) if address.0.len() == 2));
}

/// Query parameters, the header, and the locations of the faults.
type Faulty<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>, &'a [&'a str]);

#[test]
fn reports_every_fault() {
    let with_index = format!("{HASH}:7");
    let cases: [Faulty<'_>; 8] = [
        (&[("Stream", "Logs")], None, &["query.Stream"]),
        (
            &[("Address", "0x1"), ("Topic0", "0x"), ("Topic2", "x"), ("FromBlock", "-1"), ("LastEventId", "0x1")],
            None,
            &["query.Topic0", "query.Topic2", "query.Address", "query.FromBlock", "query.LastEventId"],
        ),
        (&[("Stream", "all"), ("Address", "0x1")], None, &["query.Stream", "query.Address"]),
        (&[("LastEventId", HASH)], Some("7"), &["header.Last-Event-ID"]),
        (&[("Stream", "blocks"), ("Address", ADDRESS), ("Topic1", HASH)], None, &["query.Address", "query.Topic1"]),
        (&[("Stream", "blocks")], Some(&with_index), &["header.Last-Event-ID"]),
        (
            &[("Stream", "pendingTransactions"), ("FromBlock", "1")],
            Some(HASH),
            &["query.FromBlock", "header.Last-Event-ID"],
        ),
        (&[("Stream", "pendingTransactions")], Some("-1"), &["header.Last-Event-ID"]),
    ];
    for (query, header, expected) in cases {
        assert_eq!(read(query, header).unwrap_err(), expected, "{query:?} {header:?}");
    }
}

#[test]
fn rejects_malformed_ids() {
    let texts =
        ["", ":", "0x", "7", ":7", &HASH[2..], &format!("{HASH}:"), &format!("{HASH}:+7"), &format!("{HASH}:7:")];
    let overflow = format!("{HASH}:18446744073709551616");
    for text in texts.into_iter().chain([overflow.as_str()]) {
        assert_eq!(text.parse::<ChainEventId>(), Err(TextError::ChainEventId), "{text:?}");
    }
}

#[test]
fn event_data_looks_like_filter_changes() {
    let cases = [
        (EventData::Block(Data(hash())), "block", format!("\"{HASH}\"")),
        (EventData::Transaction(Data(hash())), "transaction", format!("\"{HASH}\"")),
        (EventData::Log(Log::default()), "log", serde_json::to_string(&Log::default()).unwrap()),
    ];
    for (data, name, json) in cases {
        assert_eq!((data.name(), serde_json::to_string(&data).unwrap()), (name, json));
    }
    assert_eq!(EventId::Arrival(7).to_string(), "7");
    assert_eq!(EventId::Chain(chain_id(Some(7))).to_string(), format!("{HASH}:7"));
}

proptest! {
    #[test]
    fn ids_read_back(block in any::<[u8; 32]>(), log_index in proptest::option::of(any::<u64>())) {
        let id = ChainEventId { block: H256(block), log_index };
        prop_assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn any_text_is_an_id_or_refused(text in prop_oneof![".{0,80}", "0x[0-9a-fA-F]{64}(:[0-9]{0,22})?(:|é)?"]) {
        if let Ok(id) = text.parse::<ChainEventId>() {
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            prop_assert!(text.to_ascii_lowercase().starts_with(&Data(id.block).to_string()));
        }
    }
}
