//! Finding the endpoints of a path.
//!
//! actix-web compares a path with one route after the other, with regular expressions where there are parameters. Here
//! the name of the operation is looked up, and what follows it is split into parameters.

use super::endpoint::{self, Endpoint, Methods};
use super::operation::CONTROL;
use super::{documents, fallback, pages};
use crate::admission::Access;
use crate::exchange::parameters::{PathParameters, decode_lossy};
use crate::service::Service;
use crate::{rpc, websocket};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::web;
use std::collections::HashMap;
use std::rc::Rc;

/// The endpoints of every path. Each worker has its own.
#[derive(Default)]
pub(crate) struct Table {
    /// Those of paths without parameters, in every spelling.
    fixed: HashMap<String, Rc<Resource>>,
    /// Those of paths with parameters, by the part before the first one.
    with_parameters: HashMap<String, Vec<(Template, Rc<Resource>)>>,
}

/// The endpoints of a path, and its parameters.
pub(crate) struct Found {
    resource: Rc<Resource>,
    parameters: PathParameters,
}

/// The endpoints of one path.
struct Resource {
    endpoints: Vec<Endpoint>,
    /// The value of `Allow`.
    allow: &'static str,
}

/// The part of a path that begins with its first parameter, such as `{Hash}/{Index}/` or `{Name}.json`.
#[derive(Debug, PartialEq)]
struct Template {
    parameters: Vec<&'static str>,
    /// The end of the last segment.
    suffix: &'static str,
    /// Whether a slash may follow.
    may_end_with_slash: bool,
}

impl Table {
    /// Returns the table of all routes: with those that control a chain if `producing` is set.
    pub(crate) fn new(producing: bool) -> Self {
        let mut table = Self::default();
        let mut paths = HashMap::<_, Vec<_>>::new();
        for operation in super::operations(producing) {
            for path in operation.paths() {
                paths.entry(path).or_default().extend(Endpoint::of(&operation));
            }
        }
        for (path, endpoints) in paths {
            table.serve(path, endpoints);
        }
        table.serve_messages();
        table.serve_pages();
        table
    }

    /// Responds to a request with the endpoints that were found for its path.
    pub(crate) fn respond(
        service: web::Data<Service>,
        request: ServiceRequest,
        found: Option<Found>,
    ) -> impl Future<Output = ServiceResponse> {
        let (request, payload) = request.into_parts();
        async move {
            let response = match found {
                None => fallback::refuse(service, request.clone(), payload, None).await,
                Some(Found { resource, parameters }) => {
                    let mut endpoints = resource.endpoints.iter();
                    match endpoints.find(|endpoint| endpoint.methods.accept(request.head())) {
                        Some(endpoint) => endpoint.respond(service, request.clone(), payload, parameters).await,
                        None => fallback::refuse(service, request.clone(), payload, Some(resource.allow)).await,
                    }
                }
            };
            ServiceResponse::new(request, response)
        }
    }

    /// Finds the endpoints of a path below the base path.
    pub(crate) fn find(&self, path: &str) -> Option<Found> {
        if let Some(resource) = self.fixed.get(path) {
            return Some(Found { resource: Rc::clone(resource), parameters: PathParameters::default() });
        }
        let folder = if path.starts_with(CONTROL) { CONTROL.len() } else { 1 };
        let end = folder + path.get(folder..)?.find('/')?;
        let (name, rest) = (&path[..end], &path[end + 1..]);
        let mut templates = self.with_parameters.get(name)?.iter();
        templates.find_map(|(template, resource)| {
            Some(Found { resource: Rc::clone(resource), parameters: template.parameters(rest)? })
        })
    }

    /// Serves `endpoints` at `path`, and at its other spellings: with or without the slash at the end unless it is a
    /// file, and with `node_` before the name if that is the path of an operation that does not control the chain.
    fn serve(&mut self, path: &'static str, endpoints: Vec<Endpoint>) {
        let resource = Rc::new(Resource::new(endpoints));
        let (name, parameters) = path.split_at(path.find("/{").unwrap_or(path.len()));
        let name = name.trim_end_matches('/');
        let prefixed = (path.ends_with('/') && !path.starts_with(CONTROL)).then(|| ["/node_", &name[1..]].concat());
        for name in prefixed.into_iter().chain([name.to_owned()]) {
            if !parameters.is_empty() {
                let templates = self.with_parameters.entry(name).or_default();
                templates.push((Template::new(parameters), Rc::clone(&resource)));
                continue;
            }
            if !name.contains('.') {
                self.fixed.insert([&name, "/"].concat(), Rc::clone(&resource));
            }
            self.fixed.insert(name, Rc::clone(&resource));
        }
    }

    /// Serves JSON-RPC: by POST to `/`, which is also the home page, and to `/rpc`; over WebSocket at `/ws` and `/`.
    fn serve_messages(&mut self) {
        // The operation is known once the message is decoded.
        let post = || Endpoint::new("rpc", Methods::Post, Access::Guarded, rpc::post);
        // Clients of other development nodes expect WebSocket at the root.
        let upgrade = || Endpoint::new("ws", Methods::Upgrade, Access::Guarded, websocket::upgrade);
        self.serve_exactly("/", vec![upgrade(), Endpoint::page("home", pages::home), post()]);
        // The base path, or the path of a scope, without the slash at the end.
        self.serve_exactly("", vec![upgrade(), Endpoint::page("home", pages::add_slash), post()]);
        self.serve("/rpc", vec![post()]);
        self.serve("/ws", vec![Endpoint::new("ws", Methods::GetOnly, Access::Guarded, websocket::upgrade)]);
    }

    fn serve_pages(&mut self) {
        let pages = [("/docs", "docs"), ("/problems", "problemIndex"), ("/schemas", "schemaIndex")];
        for (path, name) in pages {
            // URLs in the page are relative to a folder.
            self.serve_exactly(path, vec![Endpoint::page(name, pages::add_slash)]);
        }
        self.serve_exactly("/docs/", vec![Endpoint::page("docs", pages::docs)]);
        // Browsers may add a slash to the address of a page.
        let resource = Rc::new(Resource::new(vec![Endpoint::page("problems", documents::problem)]));
        self.with_parameters.entry("/problems".to_owned()).or_default().push((Template::new("/{Slug}/"), resource));
        self.serve("/assets/{File}", vec![Endpoint::page("assets", pages::asset)]);
        self.serve("/docs/{File}", vec![Endpoint::page("docs", pages::swagger_file)]);
    }

    /// Serves `endpoints` at `path` only.
    fn serve_exactly(&mut self, path: &str, endpoints: Vec<Endpoint>) {
        self.fixed.insert(path.to_owned(), Rc::new(Resource::new(endpoints)));
    }
}

impl Resource {
    fn new(endpoints: Vec<Endpoint>) -> Self {
        Self { allow: endpoint::allow(&endpoints), endpoints }
    }
}

impl Template {
    /// Reads the part of a path after its name, such as `/{Hash}/{Index}/`.
    fn new(path: &'static str) -> Self {
        let parameters = path.split('{').skip(1).filter_map(|segment| Some(segment.split_once('}')?.0)).collect();
        let suffix = path.rsplit_once('}').map_or("", |(_, suffix)| suffix.trim_end_matches('/'));
        Self { parameters, suffix, may_end_with_slash: path.ends_with('/') }
    }

    /// Returns the parameters in the part of a path after the name and a slash, or `None` if it does not match.
    fn parameters(&self, path: &str) -> Option<PathParameters> {
        let path = if self.may_end_with_slash { path.strip_suffix('/').unwrap_or(path) } else { path };
        let values: Vec<_> = path.strip_suffix(self.suffix)?.split('/').collect();
        let matches = values.len() == self.parameters.len() && values.iter().all(|value| !value.is_empty());
        // Escapes of `%`, `/` and `+` are left in paths until here.
        matches.then(|| {
            let values = values.into_iter().map(|value| decode_lossy(value, false));
            self.parameters.iter().copied().zip(values).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_spelling() {
        let table = Table::new(true);
        let name = |path: &str| Some(table.find(path)?.resource.endpoints[0].operation);
        let cases = [
            ("/getLogs/", Some("getLogs")),
            ("/getLogs", Some("getLogs")),
            ("/node_getLogs", Some("getLogs")),
            ("/node_getLogs/", Some("getLogs")),
            ("/getBlockByNumber/latest/false/", Some("getBlockByNumber")),
            ("/getBlockByNumber/latest", Some("getBlockByNumber")),
            ("/node_getBlockByNumber/1", Some("getBlockByNumber")),
            ("/dev/mine", Some("mine")),
            ("/dev/mine/", Some("mine")),
            ("/health", Some("health")),
            ("/health/", Some("health")),
            ("/docs", Some("docs")),
            ("/docs/swagger-ui.css", Some("docs")),
            ("/openapi.json", Some("openapi")),
            ("/schemas/Input_call.json", Some("schemas")),
            ("/problems/block-not-found", Some("problems")),
            ("/problems/block-not-found/", Some("problems")),
            ("/", Some("ws")),
            ("", Some("ws")),
            ("/getlogs", None),
            ("/node_/getLogs", None),
            ("/node_node_getLogs", None),
            ("/node_dev/mine", None),
            ("/node_health", None),
            ("/openapi.json/", None),
            ("/getLogs/1", None),
            ("/getLogs//", None),
            ("//", None),
            ("/dev", None),
            ("/dev/", None),
            ("/mine", None),
            ("x", None),
            ("é/", None),
        ];
        for (path, expected) in cases {
            assert_eq!(name(path), expected, "{path}");
        }
        assert!(Table::new(false).find("/dev/mine").is_none());
    }

    #[test]
    fn templates_match_whole_segments() {
        /// The parameters, or `None` if the path does not match.
        type Expected = Option<&'static [(&'static str, &'static str)]>;
        let cases: [(&'static str, &str, Expected); 12] = [
            ("/{A}/{B}/", "1/2/", Some(&[("A", "1"), ("B", "2")])),
            ("/{A}/{B}/", "1/2", Some(&[("A", "1"), ("B", "2")])),
            ("/{A}/{B}/", "%2F/%25", Some(&[("A", "/"), ("B", "%")])),
            ("/{A}/{B}/", "1/", None),
            ("/{A}/{B}/", "/2", None),
            ("/{A}/{B}/", "1/2//", None),
            ("/{A}/{B}/", "1/2/3", None),
            ("/{Name}.json", "a.json", Some(&[("Name", "a")])),
            ("/{Name}.json", ".json", None),
            ("/{Name}.json", "a", None),
            ("/{Name}.json", "a.json/", None),
            ("/{Name}.json", "", None),
        ];
        for (template, path, expected) in cases {
            let expected =
                expected.map(|values| values.iter().map(|(name, value)| (*name, (*value).to_owned())).collect());
            assert_eq!(Template::new(template).parameters(path), expected, "{template} {path}");
        }
    }
}
