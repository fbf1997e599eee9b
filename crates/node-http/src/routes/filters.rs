//! Operations on filters. None of their responses may be cached, because even a read advances the filter or extends its
//! lifetime.

use super::logs::write_logs;
use super::operation::{Declaration, Link, Operation};
use crate::convert::{self, output};
use crate::exchange::{Exchange, Job};
use crate::problem::page::ProblemPage::{BlockNotFound, FilterNotFound, LimitExceeded};
use node_core::cost::Cost;
use node_core::filters::{FilterId, InvalidFilterId};
use node_core::node::BlockRange;
use node_types::wire::{
    EmptyInput, FilterIdInput, FilterIdOutput, FilterObject, GetFilterChangesOutput, GetFilterLogsOutput, LogRange,
    NewFilterInput, UninstallFilterInput, UninstallFilterOutput,
};

/// Follow-up operations on a filter that was created.
const FILTER: &[Link] = &[
    ("getFilterChanges", "FilterId", "FilterId"),
    ("getFilterLogs", "FilterId", "FilterId"),
    ("uninstallFilter", "FilterId", "FilterId"),
];

const FILTERS: &str =
    "1,024 filters at a time (`max-filters`); a filter that is not polled for 5 min is removed (`filter-ttl`).";
const LOG_FILTERS: &str = "1,024 filters at a time (`max-filters`); a filter that is not polled for 5 min is removed \
     (`filter-ttl`). 1,000 addresses (`max-addresses`), 4 positions of topics with 1,000 topics each (`max-topics`). 64 MiB of addresses and \
     topics of all filters and subscriptions (`max-filter-bytes`).";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::post(
            "/newFilter/",
            "Create a log filter",
            "Creates a filter that reports matching logs, from now on, when it is polled with getFilterChanges. After a reorganization \
             it reports the removed logs first. `\"\"` matches anything.",
        )
        .limits(LOG_FILTERS)
        .no_store()
        .by_writer()
        .problems(&[BlockNotFound, LimitExceeded])
        .links(FILTER)
        .body_with_check(
            Cost::FILTER,
            |NewFilterInput { filter_object: FilterObject { from_block, to_block, .. } }| LogRange {
                from: *from_block,
                to: *to_block,
            },
            NewFilterInput::range_of,
            |node, context, &LogRange { from, to }| node.check_filter_range(context, &BlockRange { from, to }),
            |node, context, input: NewFilterInput| {
                let (filter, range) = convert::input::log_filter(input.filter_object);
                node.new_filter(context, filter, range).map(created)
            },
        ),
        Operation::post(
            "/newBlockFilter/",
            "Create a block filter",
            "Creates a filter that reports the hash of each block that joins the canonical chain.",
        )
        .limits(FILTERS)
        .by_any_method()
        .no_store()
        .by_writer()
        .links(FILTER)
        .optional_body(|_, _: &EmptyInput| Cost::FILTER, |node, context, _| node.new_block_filter(context).map(created)),
        Operation::post(
            "/newPendingTransactionFilter/",
            "Create a transaction filter",
            "Creates a filter that reports the hash of each transaction that enters the pool.",
        )
        .limits(FILTERS)
        .by_any_method()
        .no_store()
        .by_writer()
        .links(FILTER)
        .optional_body(
            |_, _: &EmptyInput| Cost::FILTER,
            |node, context, _| node.new_pending_transaction_filter(context).map(created),
        ),
        poll(
            "/getFilterChanges/{FilterId}/",
            "Poll a filter",
            "Returns what happened since the last successful poll: logs, or hashes of blocks or transactions.",
        )
        .limits("20,000 entries (`max-logs`); the rest is returned by the next poll.")
        .parameters(|_, _: &FilterIdInput| Cost::FILTER, |node, context, input| {
            let changes = node.get_filter_changes(context, input.filter_id.parse::<FilterId>()?)?;
            Ok(GetFilterChangesOutput { result: output::filter_changes(changes) })
        }),
        poll(
            "/getFilterLogs/{FilterId}/",
            "Read all logs of a filter",
            "Returns all logs in the whole range of a log filter, whether they were polled or not.",
        )
        .limits("20,000 logs (`max-logs`).")
        .takes::<FilterIdInput>()
        .output::<GetFilterLogsOutput>()
        .handler(|exchange: Exchange| {
            let job = exchange.parameters(|parameters| {
                let FilterIdInput { filter_id } = parameters.input(&[])?;
                Ok(Job::writing(Cost::FILTER, move |node, context, out| {
                    let id = filter_id.parse::<FilterId>()?;
                    write_logs(out, |visit| node.visit_filter_logs(context, id, visit))?;
                    Ok(None)
                }))
            });
            exchange.run(job)
        }),
        Operation::get(
            "/uninstallFilter/{FilterId}/",
            "Remove a filter",
            "Removes a filter. Returns whether it existed.",
        )
        .no_store()
        .by_writer()
        .parameters(|_, _: &UninstallFilterInput| Cost::FILTER, |node, context, input| {
            let result = match input.filter_id.parse() {
                Ok(id) => node.uninstall_filter(context, id)?,
                Err(InvalidFilterId) => false,
            };
            Ok(UninstallFilterOutput { result })
        }),
    ]
}

/// Starts the declaration of an operation that reads a filter.
fn poll(path: &'static str, summary: &'static str, description: &'static str) -> Declaration {
    Operation::get(path, summary, description).no_store().by_writer().problems(&[FilterNotFound, LimitExceeded])
}

fn created(id: FilterId) -> FilterIdOutput {
    FilterIdOutput { filter_id: id.to_string() }
}
