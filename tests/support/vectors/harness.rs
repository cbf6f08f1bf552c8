//! The topic of the harnesses: rows of facts, and calls of one function each.

use std::str::FromStr;

use serde_json::{Map, Value, json};
use tangle_sandbox::contract::from_value;
use tangle_sandbox::contract::harness::EFFORTS;
use tangle_sandbox::contract::types::{Harness, ModelReasoning};

use super::{Case, Wrong, same};

/// `core-harness`: a harness to its row, or a call to its result.
pub fn harness(case: &Case) -> Result<(), Wrong> {
    case.only(&["name", "input", "output"])?;
    let Some(expected) = case.get("output") else {
        return Err(Wrong("asserts nothing: `output` is missing".to_owned()));
    };
    let input = case.input()?.clone().into_value();
    let input = input.as_object().ok_or_else(malformed)?;
    let keys: Vec<&str> = input.keys().map(String::as_str).collect();
    let found = match keys[..] {
        ["harness"] => row(named(&input["harness"])?),
        ["args", "call"] => call(&input["call"], &input["args"])?,
        _ => return Err(malformed()),
    };
    same("output", expected.clone().into_value(), found)
}

fn malformed() -> Wrong {
    Wrong("`input` is neither a harness nor a call".to_owned())
}

fn named<T: FromStr>(name: &Value) -> Result<T, Wrong> {
    let unknown = || Wrong("`input` names an unknown harness".to_owned());
    name.as_str()
        .and_then(|name| name.parse().ok())
        .ok_or_else(unknown)
}

fn row(harness: Harness) -> Value {
    let controls: Map<String, Value> = EFFORTS
        .iter()
        .map(|effort| (effort.to_string(), json!(harness.native_control(*effort))))
        .collect();
    json!({
        "providers": harness.provider().map(|provider| [provider]),
        "efforts": harness.efforts(),
        "nativeControl": controls,
        "honorsModel": harness.honors_model(),
        "honorsEffort": harness.honors_effort(),
        "systemPrompt": harness.system_prompt(),
    })
}

fn call(function: &Value, args: &Value) -> Result<Value, Wrong> {
    let other = || Wrong("the call has other arguments than it takes".to_owned());
    let function = function.as_str().unwrap_or_default();
    let args = args.as_array().map(Vec::as_slice).ok_or_else(other)?;
    match (function, args) {
        ("harnessSupportsModel", [harness, Value::String(model)]) => {
            Ok(json!(named::<Harness>(harness)?.runs(model)))
        }
        ("preferredHarnessForModel", [Value::String(model)]) => {
            Ok(json!(Harness::preferred_for(model)))
        }
        ("snapHarnessToModel", [harness, Value::String(model)]) => {
            Ok(json!(named::<Harness>(harness)?.snapped_to(model)))
        }
        ("snapModelToHarness", [harness, Value::String(model), Value::Array(candidates)]) => {
            let candidates: Option<Vec<&str>> = candidates.iter().map(Value::as_str).collect();
            let candidates = candidates.ok_or_else(other)?;
            Ok(json!(named::<Harness>(harness)?.snap(model, &candidates)))
        }
        ("reasoningEffortsFor", [harness] | [harness, Value::Null]) => {
            Ok(json!(named::<Harness>(harness)?.efforts()))
        }
        ("reasoningEffortsFor", [harness, model]) => {
            let model: ModelReasoning = from_value(model.clone()).map_err(|_| other())?;
            Ok(json!(named::<Harness>(harness)?.efforts_for(&model)))
        }
        ("harnessProviders", [harness]) => {
            let provider = named::<Harness>(harness)?.provider();
            Ok(json!(provider.map(|provider| [provider])))
        }
        ("modelProvider", [Value::String(model)]) => Ok(json!(
            tangle_sandbox::contract::harness::model_provider(model)
        )),
        ("harnessReasoningEfforts", [harness]) => Ok(json!(named::<Harness>(harness)?.efforts())),
        ("harnessHonorsModel", [harness]) => Ok(json!(named::<Harness>(harness)?.honors_model())),
        ("harnessHonorsEffort", [harness]) => Ok(json!(named::<Harness>(harness)?.honors_effort())),
        (
            "harnessSupportsModel"
            | "preferredHarnessForModel"
            | "snapHarnessToModel"
            | "snapModelToHarness"
            | "reasoningEffortsFor"
            | "harnessProviders"
            | "modelProvider"
            | "harnessReasoningEfforts"
            | "harnessHonorsModel"
            | "harnessHonorsEffort",
            _,
        ) => Err(other()),
        (function, _) => Err(Wrong(format!("unknown call `{function}`"))),
    }
}
