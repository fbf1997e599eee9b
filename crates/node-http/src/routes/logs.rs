//! Logs, whole or by pages.

use super::Routes;
use crate::exchange::Exchange;
use crate::place::Place;
use actix_web::HttpResponse;
use node_core::node::{LogCursor, Node};
use node_types::wire::{ErrorDetail, GetLogsInput};

pub(super) fn posts(routes: &mut Routes<'_>) {
    routes.post("getLogs", get_logs);
}

async fn get_logs(mut exchange: Exchange) -> HttpResponse {
    let cursor = exchange.parameters(|parameters| cursor(parameters.query("cursor")));
    let input = exchange.body::<GetLogsInput>().await;
    match cursor {
        Ok(None) if !exchange.prefers("page") => exchange.run(input, Place::logs, Node::get_logs).await,
        Ok(cursor) => {
            let work = move |node: &Node, context: &_, input| {
                let page = node.get_logs_page(context, input, cursor)?;
                Ok((page.output, page.next.map(|cursor| format!("getLogs/?cursor={cursor}"))))
            };
            exchange.run_paged(input, Place::logs, work).await
        }
        Err(error) => exchange.fail(&error),
    }
}

fn cursor(text: Option<String>) -> Result<Option<LogCursor>, Vec<ErrorDetail>> {
    let fault = |text: &str| ErrorDetail::new("query.cursor", "not a cursor that this server made").with_text(text);
    text.map(|text| text.parse().map_err(|_| vec![fault(&text)])).transpose()
}
