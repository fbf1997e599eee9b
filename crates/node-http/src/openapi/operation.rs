//! One operation, as the description of the interface tells of it.

use super::problems;
use super::{examples, headers, reference};
use crate::problem_page::ProblemPage;
use node_types::wire::schema::TextParameter;
use serde_json::{Map, Value, json};

/// What the answer of an operation is.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    /// The JSON document `Output_<operation>`.
    Output,
    /// A text of one of these media types.
    Text(&'static [&'static str]),
    /// Some JSON object of this media type.
    Object(&'static str),
}

/// A parameter in the path, the query or a header.
pub(super) struct Parameter {
    name: &'static str,
    place: &'static str,
    schema: Value,
    description: &'static str,
}

/// An operation: a method of a path.
pub(super) struct Operation {
    /// Names the operation in generated clients.
    pub(super) id: &'static str,
    pub(super) method: &'static str,
    /// The template of the path, without the base.
    pub(super) path: &'static str,
    tag: &'static str,
    summary: &'static str,
    description: &'static str,
    limits: Option<&'static str>,
    parameters: Vec<Parameter>,
    /// Whether there is a body, and whether it is required.
    body: Option<bool>,
    answer: Answer,
    problems: &'static [ProblemPage],
    links: &'static [Link],
    open: bool,
    stored: bool,
}

/// What a client may ask next, with what: operation, name of the parameter, path in the answer.
pub(super) type Link = (&'static str, &'static str, &'static str);

impl Operation {
    pub(super) fn get(id: &'static str, path: &'static str, summary: &'static str, description: &'static str) -> Self {
        Self {
            id,
            method: "get",
            path,
            tag: "",
            summary,
            description,
            limits: None,
            parameters: Vec::new(),
            body: None,
            answer: Answer::Output,
            problems: &[],
            links: &[],
            open: false,
            stored: true,
        }
    }

    /// Reads a body.
    pub(super) fn post(id: &'static str, path: &'static str, summary: &'static str, description: &'static str) -> Self {
        Self { method: "post", body: Some(true), stored: false, ..Self::get(id, path, summary, description) }
    }

    /// The body may be left out.
    pub(super) fn optional_body(self) -> Self {
        Self { body: Some(false), ..self }
    }

    pub(super) fn tagged(self, tag: &'static str) -> Self {
        Self { tag, ..self }
    }

    /// What bounds the request beyond the bounds of all; each bound names its option.
    pub(super) fn limits(self, limits: &'static str) -> Self {
        Self { limits: Some(limits), ..self }
    }

    pub(super) fn path(self, name: &'static str, kind: TextParameter, description: &'static str) -> Self {
        self.with("path", name, kind.schema(), description)
    }

    /// Generators of clients write booleans in paths as their language does, so that it is a word.
    pub(super) fn flag(self) -> Self {
        let text = "`true` for whole transactions, `false` for objects that hold only their hashes.";
        self.with("path", "TransactionDetailFlag", json!({ "type": "string", "enum": ["true", "false"] }), text)
    }

    /// A parameter of the query that may be left out or empty.
    pub(super) fn query(self, name: &'static str, kind: TextParameter, description: &'static str) -> Self {
        self.with("query", name, kind.optional_schema(), description)
    }

    pub(super) fn with(
        mut self,
        place: &'static str,
        name: &'static str,
        schema: Value,
        description: &'static str,
    ) -> Self {
        self.parameters.push(Parameter { name, place, schema, description });
        self
    }

    pub(super) fn answers(self, answer: Answer) -> Self {
        Self { answer, ..self }
    }

    /// Problems with a page that it may answer.
    pub(super) fn problems(self, problems: &'static [ProblemPage]) -> Self {
        Self { problems, ..self }
    }

    pub(super) fn links(self, links: &'static [Link]) -> Self {
        Self { links, ..self }
    }

    /// Needs no token.
    pub(super) fn open(self) -> Self {
        Self { open: true, ..self }
    }

    /// Creates, advances or takes something, so that no cache may keep the answer.
    pub(super) fn not_stored(self) -> Self {
        Self { stored: false, ..self }
    }

    /// The name in the names of schemas, which all paths of an operation share.
    pub(super) fn name(&self) -> &'static str {
        let path = self.path.strip_prefix("/dev").unwrap_or(self.path);
        path.split('/').nth(1).unwrap_or_default()
    }

    /// The Operation Object.
    pub(super) fn describe(&self) -> Value {
        let mut description = self.description.to_owned();
        if let Some(limits) = self.limits {
            description += "\n\nLimits: ";
            description += limits;
        }
        let mut operation = json!({
            "operationId": self.id,
            "tags": [self.tag],
            "summary": self.summary,
            "description": description,
            "responses": self.responses(),
        });
        if !self.parameters.is_empty() {
            let parameters: Vec<_> = self.parameters.iter().map(|parameter| parameter.describe(self.id)).collect();
            operation["parameters"] = parameters.into();
        }
        if let Some(required) = self.body {
            operation["requestBody"] = self.describe_body(required);
        }
        if self.open {
            operation["security"] = json!([]);
        }
        operation
    }

    fn describe_body(&self, required: bool) -> Value {
        let mut content = json!({ "schema": reference("schemas", &format!("Input_{}", self.name())) });
        if let Some(example) = examples::of(self.id).get("request") {
            content["example"] = example.clone();
        }
        json!({ "required": required, "content": { "application/json": content } })
    }

    fn responses(&self) -> Value {
        let mut responses = Map::new();
        responses.insert("200".to_owned(), self.success());
        if self.method == "get" && self.stored {
            responses.insert("304".to_owned(), reference("responses", "NotModified"));
        }
        let takes_input = matches!(self.answer, Answer::Output) || !self.open;
        for (status, name) in problems::STATUSES {
            let possible = match status {
                400 => self.body.is_some() || !self.parameters.is_empty(),
                401 => !self.open,
                404 => self.missing(),
                408 | 413 | 415 => self.body.is_some(),
                422 => takes_input,
                _ => true,
            };
            if possible {
                let response = match status {
                    404 | 422 => problems::response(status, &self.pages(), self.open),
                    _ => reference("responses", name),
                };
                responses.insert(status.to_string(), response);
            }
        }
        responses.into()
    }

    /// Problems with a page that it may answer; that a body is nested too deep is one of any body.
    fn pages(&self) -> Vec<ProblemPage> {
        let mut pages = self.problems.to_vec();
        if self.body.is_some() && !pages.contains(&ProblemPage::LimitExceeded) {
            pages.push(ProblemPage::LimitExceeded);
        }
        pages
    }

    /// Whether what is asked for may be missing.
    fn missing(&self) -> bool {
        let not_found = |page: &ProblemPage| problems::status_of(*page) == 404;
        self.problems.iter().any(not_found) || (self.open && !self.parameters.is_empty())
    }

    fn success(&self) -> Value {
        let mut content: Map<_, _> = match self.answer {
            Answer::Output => {
                let content = json!({ "schema": reference("schemas", &format!("Output_{}", self.name())) });
                Map::from_iter([("application/json".to_owned(), content)])
            }
            Answer::Text(kinds) => {
                let text = |kind: &str| if kind.starts_with("text/") { json!({ "type": "string" }) } else { json!({}) };
                kinds.iter().map(|kind| ((*kind).to_owned(), json!({ "schema": text(kind) }))).collect()
            }
            Answer::Object(kind) => Map::from_iter([(kind.to_owned(), json!({ "schema": { "type": "object" } }))]),
        };
        // Where there are several media types, the last is what is answered to those who name none.
        if let (Some(content), Some(answer)) = (content.values_mut().next_back(), examples::of(self.id).get("answer")) {
            content["example"] = answer.clone();
        }
        let mut response = json!({
            "description": "The answer.",
            "headers": headers::of_success(matches!(self.answer, Answer::Output), self.method == "get" && self.stored),
            "content": content,
        });
        if !self.links.is_empty() {
            let link = |(operation, parameter, field): &Link| {
                let value = format!("$response.body#/{field}");
                let given = if operation == &"revert" {
                    json!({ "operationId": operation, "requestBody": { *parameter: value } })
                } else {
                    json!({ "operationId": operation, "parameters": { *parameter: value } })
                };
                ((*operation).to_owned(), given)
            };
            response["links"] = Map::from_iter(self.links.iter().map(link)).into();
        }
        response
    }
}

impl Parameter {
    fn describe(&self, operation: &str) -> Value {
        let mut parameter = json!({
            "name": self.name,
            "in": self.place,
            "required": self.place == "path",
            "description": self.description,
            "schema": self.schema,
        });
        if let Some(example) = examples::of(operation)["parameters"].get(self.name) {
            parameter["example"] = example.clone();
        }
        parameter
    }
}
