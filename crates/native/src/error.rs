//! Rust errors as `pathcast.errors.PathcastError`.

use pathcast_base::{Exit, Fault};
use pathcast_far::plain;
use pyo3::prelude::*;

/// An error on its way to Python.
pub struct Failed {
    code: String,
    message: String,
    hint: Option<String>,
    exit: Exit,
}

impl Failed {
    pub fn new(fault: impl Fault) -> Failed {
        Failed::of(&fault)
    }

    pub fn of(fault: &dyn Fault) -> Failed {
        Failed { code: fault.code().into(), message: fault.to_string(), hint: fault.hint(), exit: fault.exit() }
    }

    pub fn usage(message: String) -> Failed {
        Failed { code: "usage".into(), message, hint: None, exit: Exit::Usage }
    }

    pub fn with(code: &str, message: String, exit: Exit) -> Failed {
        Failed { code: code.into(), message, hint: None, exit }
    }

    pub fn runtime(code: &str, message: String) -> Failed {
        Failed { code: code.into(), message, hint: None, exit: Exit::Runtime }
    }

    /// For JSON.
    pub fn document(&self) -> serde_json::Value {
        serde_json::json!({
            "code": self.code, "message": plain(&self.message), "hint": self.hint, "exit": self.exit as i32
        })
    }

    pub fn into_py(self, py: Python<'_>) -> PyErr {
        let message = plain(&self.message);
        let raised = py
            .import("pathcast.errors")
            .and_then(|m| m.getattr("PathcastError")?.call1((self.code, message, self.hint, self.exit as i32)));
        raised.map_or_else(|e| e, PyErr::from_value)
    }
}

/// A value as JSON; ours have no maps with other keys than strings, so that it cannot fail.
pub fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("results are plain data")
}

/// Reads a document that the Python side made; an error shows none of it, since there may be secrets in it.
pub fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Failed> {
    serde_json::from_str(text).map_err(|e| Failed::usage(format!("not what the extension takes: {e}")))
}
