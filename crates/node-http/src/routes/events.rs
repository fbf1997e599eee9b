//! What happens, told as it does.

use super::{Methods, Routes};
use crate::events;
use crate::exchange::Exchange;
use crate::parameters::Parameters;
use actix_web::{HttpRequest, HttpResponse};
use node_types::wire::{ErrorDetail, EventsInput};

pub(super) fn gets(routes: &mut Routes<'_>) {
    routes.add(Methods::GetOnly, "events", "", stream_events);
}

async fn stream_events(exchange: Exchange) -> HttpResponse {
    let input = exchange.parameters(|parameters| input(exchange.request(), parameters));
    events::respond(exchange.no_store(), input).await
}

fn input(request: &HttpRequest, parameters: &mut Parameters<'_>) -> Result<EventsInput, Vec<ErrorDetail>> {
    let values = parameters.queries(EventsInput::PARAMETERS);
    let value = |name: &str| {
        let index = EventsInput::PARAMETERS.iter().position(|known| *known == name)?;
        values[index].as_deref()
    };
    // What is no UTF-8 is no id either.
    let header = request.headers().get("last-event-id").map(|id| String::from_utf8_lossy(id.as_bytes()));
    EventsInput::from_query(value, header.as_deref())
}
