//! A deployment, a client of it and the recorder between them. A step runs a call and keeps what it sent and got.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use tangle_sandbox::contract::routes::Route;
use tangle_sandbox::sandbox::Client;
use tangle_sandbox::transport::Response;
use tangle_sandbox_local::Local;

use super::super::recorder::{Exchange, Recorder};
use super::forms::Forms;
use super::render;

/// The key of the deployment, which must be in no snapshot.
const KEY: &str = "tsk-canary-5f1d9b";
/// A key that the deployment does not know.
pub const WRONG_KEY: &str = "tsk-canary-wrong";
/// Bytes of a create request, few enough that a larger one can be read.
pub const CREATE_LIMIT: usize = 512;
/// Bytes of any other request but a run's or a file's.
pub const BODY_LIMIT: usize = 256;

/// Snapshots by folder and name, and what they are of.
#[derive(Debug, Default)]
pub struct Snapshots {
    /// `request/sandboxes.create` and its text.
    pub texts: BTreeMap<String, String>,
    /// Names of the routes with a snapshot of a request and of its answer.
    pub routes: BTreeSet<&'static str>,
    /// Types of events that came, with the type of their part.
    pub came: BTreeSet<String>,
    /// Those that have a snapshot.
    pub events: BTreeSet<String>,
}

impl Snapshots {
    /// Takes in those of another deployment.
    pub fn add(&mut self, other: Self) {
        for (name, text) in other.texts {
            let before = self.texts.insert(name.clone(), text);
            assert!(before.is_none(), "two snapshots are named {name}");
        }
        self.routes.extend(other.routes);
        self.came.extend(other.came);
        self.events.extend(other.events);
    }
}

/// Everything that a step needs.
pub struct Stage {
    /// A client whose calls are recorded.
    pub client: Client,
    /// The recorder.
    pub recorder: Recorder,
    /// What differs from run to run.
    pub forms: Forms,
    /// What was kept.
    pub kept: Snapshots,
    local: Local,
}

impl Stage {
    /// Starts a deployment in `folder`.
    pub async fn start(folder: &Path, keep_alive: Duration) -> Self {
        let local = Local::builder()
            .data_dir(folder)
            .api_key(KEY.into())
            .opencode("/nowhere/opencode") // so that the catalogue is the same on every machine
            .create_body_limit(CREATE_LIMIT)
            .body_limit(BODY_LIMIT)
            .keep_alive(keep_alive)
            .start()
            .await
            .unwrap();
        let recorder = Recorder::start(local.base_url()).await;
        let mut forms = Forms::default();
        let place = local.data_dir().to_str().unwrap();
        forms.learn("data", place, "/.+");
        forms.learn("deployment", local.base_url(), r"http://127\.0\.0\.1:\d+");
        forms.learn("host", &recorder.host(), r"127\.0\.0\.1:\d+");
        forms.hide(KEY);
        forms.hide(WRONG_KEY);
        Self {
            client: Client::builder(recorder.base_url(), KEY).build().unwrap(),
            recorder,
            forms,
            kept: Snapshots::default(),
            local,
        }
    }

    /// Ends the deployment and gives what was kept.
    pub async fn end(self) -> Snapshots {
        self.local.stop().await;
        self.kept
    }

    /// A client with a credential that the deployment does not know.
    pub fn stranger(&self) -> Client {
        let base = self.recorder.base_url();
        Client::builder(base, WRONG_KEY).build().unwrap()
    }

    /// Runs a call and keeps the request and the answer of its last exchange with `route`. The names of the snapshots are
    /// the route's, with `.variant` behind it when there is one.
    pub async fn step<T>(
        &mut self,
        (route, variant): (&'static Route, &str),
        call: impl Future<Output = T>,
    ) -> T {
        let (result, exchange) = self.exchange(route, call).await;
        self.keep((route, variant), &exchange);
        result
    }

    /// Keeps an exchange that succeeded.
    pub fn keep(&mut self, (route, variant): (&'static Route, &str), exchange: &Exchange) {
        let response = exchange.response.as_ref().unwrap();
        let (line, name) = (response.line(), name(route, variant));
        assert!((200..300).contains(&response.status()), "{name}: {line}");
        let request = render::message(&exchange.request, "", &self.forms);
        let answer = render::message(response, "", &self.forms);
        self.write(format!("request/{name}"), request);
        self.write(format!("response/{name}"), answer);
        self.kept.routes.insert(route.name);
        if response.is_stream() {
            let frames = render::frames(response.text());
            self.kept.came.extend(frames.into_iter().map(kind));
        }
    }

    /// Keeps a request alone, where chance decides how much of the answer is read.
    pub fn keep_request(&mut self, (route, variant): (&'static Route, &str), exchange: &Exchange) {
        let request = render::message(&exchange.request, "", &self.forms);
        self.write(format!("request/{}", name(route, variant)), request);
    }

    /// Runs a call that is refused and keeps its request and the refusal under `name`.
    pub async fn refused<T>(
        &mut self,
        (name, status): (&str, u16),
        route: &Route,
        call: impl Future<Output = T>,
    ) -> T {
        let (result, exchange) = self.exchange(route, call).await;
        self.keep_refusal((name, status), &exchange);
        result
    }

    /// Sends one raw request that is refused, and keeps it and the refusal under `name`.
    pub async fn refuse(
        &mut self,
        (name, status): (&str, u16),
        (method, path): (&str, &str),
        body: &str,
    ) {
        let client = self.client.clone();
        let call = json(&client, method, path, body);
        let (_, exchange) = self.exchange_of(method, path, call).await;
        self.keep_refusal((name, status), &exchange);
    }

    /// Keeps an exchange that was refused.
    pub fn keep_refusal(&mut self, (name, status): (&str, u16), exchange: &Exchange) {
        let response = exchange.response.as_ref().unwrap();
        let body = response.text();
        assert_eq!(response.status(), status, "{name}: {body}");
        let request = render::message(&exchange.request, "request ", &self.forms);
        let answer = render::message(response, "response ", &self.forms);
        self.write(format!("error/{name}"), format!("{request}\n{answer}"));
    }

    /// Keeps the first event that fits, of a stream.
    pub fn event(&mut self, name: &str, stream: &str, fits: impl Fn(&str) -> bool) {
        let frames = render::frames(stream);
        let frame = frames.iter().find(|frame| fits(frame));
        let frame = frame.unwrap_or_else(|| panic!("no event {name} in {stream}"));
        let text = render::event(frame, &self.forms);
        self.write(format!("event/{name}"), text);
        self.kept.events.insert(kind(frame));
    }

    /// Runs a call and gives the last exchange with `route` since it began.
    pub async fn exchange<T>(&self, route: &Route, call: impl Future<Output = T>) -> (T, Exchange) {
        let point = self.recorder.now();
        let result = call.await;
        (result, self.last_of(point, route))
    }

    /// Runs a call and gives the last exchange with this method and path since it began.
    pub async fn exchange_of<T>(
        &self,
        method: &str,
        target: &str,
        call: impl Future<Output = T>,
    ) -> (T, Exchange) {
        let path = target.split('?').next().unwrap();
        let point = self.recorder.now();
        let result = call.await;
        (result, self.last(point, method, |found| found == path))
    }

    /// Keeps the last exchange with a route since a point in the record.
    pub fn keep_since(&mut self, point: usize, (route, variant): (&'static Route, &str)) {
        let exchange = self.last_of(point, route);
        self.keep((route, variant), &exchange);
    }

    fn last_of(&self, point: usize, route: &Route) -> Exchange {
        self.last(point, route.method.as_str(), |path| {
            fits(route.template, path)
        })
    }

    fn last(&self, point: usize, method: &str, path: impl Fn(&str) -> bool) -> Exchange {
        let exchanges = self.recorder.since(point);
        let wanted = exchanges
            .into_iter()
            .rfind(|exchange| exchange.request.method() == method && path(exchange.request.path()));
        wanted.unwrap_or_else(|| panic!("no such exchange with {method}"))
    }

    fn write(&mut self, name: String, text: String) {
        self.forms.check(&name, &text);
        let before = self.kept.texts.insert(name.clone(), text);
        assert!(before.is_none(), "two snapshots are named {name}");
    }
}

/// The type of an event; of a part also its type, and whether it is an increment.
pub fn kind(frame: &str) -> String {
    if render::is_comment(frame) {
        return "comment".to_owned();
    }
    let kind = render::field(frame, "event").expect("an event has a type");
    let data = render::data(frame).expect("an event has data");
    let data: serde_json::Value = serde_json::from_str(data).expect("an event's data is JSON");
    match data["part"]["type"].as_str() {
        Some(part) if data["delta"].is_string() => format!("{kind} {part} delta"),
        Some(part) => format!("{kind} {part}"),
        None => kind.to_owned(),
    }
}

/// One raw call with a JSON body, or without one when it is empty.
pub async fn json(client: &Client, method: &str, path: &str, body: &str) -> Response {
    let body = (!body.is_empty()).then(|| body.to_owned().into());
    client.fetch(method, path, &[], body).await.unwrap()
}

fn name(route: &Route, variant: &str) -> String {
    match variant {
        "" => route.name.to_owned(),
        variant => format!("{}.{variant}", route.name),
    }
}

/// Whether a path is one of a template.
pub fn fits(template: &str, path: &str) -> bool {
    let (mut template, mut path) = (template.split('/'), path.split('/'));
    loop {
        match (template.next(), path.next()) {
            (None, None) => return true,
            (Some(name), Some(_)) if name.starts_with("{*") => return true,
            (Some(name), Some(segment)) if name == segment || name.starts_with('{') => {}
            _ => return false,
        }
    }
}
