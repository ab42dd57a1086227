//! The one register of controllers: names, papers, parameters with default, range and source.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::sync::LazyLock;

use pathcast_base::{Bytes, Nanos};

use crate::error::CongestionError;
use crate::raw::{RawController, flow_register, flow_register_len, sizes};

/// A parameter of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name in scenarios and on the command line.
    pub name: &'static str,
    /// Its default.
    pub default: u32,
    /// The least allowed value.
    pub least: u32,
    /// The largest allowed value.
    pub most: u32,
    /// What it is, with its unit.
    pub text: &'static str,
    /// Where the default comes from; `ours` if from no paper.
    pub source: &'static str,
}

/// Which hooks a controller defines itself; the others have TCP's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hooks(pub u32);

impl Hooks {
    /// Whether `send` must be called before transmit opportunities.
    pub fn send(self) -> bool {
        self.0 & 0x20 != 0
    }
}

/// A controller of the register.
#[derive(Clone)]
pub struct Info {
    /// The header's name, by which the controller is called everywhere.
    pub name: &'static str,
    /// Its name in the kernel, at most 15 characters.
    pub kernel_name: &'static str,
    /// The paper and section it comes from.
    pub paper: &'static str,
    /// `certain`, or what of it is our reconstruction.
    pub basis: &'static str,
    /// Its parameters, in the order of the C struct.
    pub params: Vec<Param>,
    /// The hooks it defines.
    pub hooks: Hooks,
    /// Bytes of private state of one flow.
    pub state_bytes: usize,
    pub(crate) raw: &'static RawController,
}

impl fmt::Debug for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Info").field("name", &self.name).field("paper", &self.paper).finish_non_exhaustive()
    }
}

/// # Safety
/// `text` points to a NUL-terminated string that lives as long as the program.
unsafe fn text(text: *const c_char) -> &'static str {
    // SAFETY: as this function's contract says
    unsafe { CStr::from_ptr(text) }.to_str().expect("the register is UTF-8")
}

fn info(raw: &'static RawController) -> Info {
    // SAFETY: `params` points to the `n_params` constant rows of the controller's table
    let rows = unsafe { std::slice::from_raw_parts(raw.params, raw.n_params as usize) };
    // SAFETY: every string of the register is a C literal
    unsafe {
        let params = rows.iter().map(|row| Param {
            name: text(row.name),
            default: row.def,
            least: row.lo,
            most: row.hi,
            text: text(row.text),
            source: text(row.source),
        });
        Info {
            name: text(raw.name),
            kernel_name: text(raw.kernel),
            paper: text(raw.paper),
            basis: text(raw.basis),
            params: params.collect(),
            hooks: Hooks(raw.hooks),
            state_bytes: raw.state_size as usize,
            raw,
        }
    }
}

static REGISTER: LazyLock<Vec<Info>> = LazyLock::new(|| {
    let (theirs, ours) = sizes();
    assert_eq!(theirs, ours, "flow.h and flow.rs describe different structs");
    // SAFETY: `flow_register` has `flow_register_len` rows, each a pointer to constant data
    unsafe {
        let rows = std::slice::from_raw_parts(
            (&raw const flow_register).cast::<*const RawController>(),
            flow_register_len as usize,
        );
        rows.iter().map(|&row| info(&*row)).collect()
    }
});

/// All controllers.
pub fn controllers() -> &'static [Info] {
    &REGISTER
}

fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// The controller called `name`.
pub fn controller(name: &str) -> Result<&'static Info, CongestionError> {
    controllers().iter().find(|info| info.name == name).ok_or_else(|| CongestionError::UnknownController {
        name: name.into(),
        allowed: joined(controllers().iter().map(|info| info.name)),
    })
}

/// A parameter's value as it is written: a whole number in its own unit or, where its name ends in that unit, a size
/// (`_bytes`) or a duration (`_us`).
///
/// # Errors
/// Why it is none.
pub fn parse_value(name: &str, text: &str) -> Result<u64, String> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map_err(|_| format!("`{text}` is too large"));
    }
    if name.ends_with("_us") {
        text.parse::<Nanos>().map(|time| time.0 / 1000).map_err(|error| error.to_string())
    } else if name.ends_with("_bytes") {
        text.parse::<Bytes>().map(|bytes| bytes.0).map_err(|error| error.to_string())
    } else {
        Err(format!("`{text}` is not a whole number"))
    }
}

/// Values for the parameters of one controller, always within their ranges.
#[derive(Clone, Debug)]
pub struct Params {
    pub(crate) info: &'static Info,
    pub(crate) values: Vec<u32>,
}

impl Params {
    /// The defaults.
    pub fn new(info: &'static Info) -> Self {
        Params { info, values: info.params.iter().map(|param| param.default).collect() }
    }
    /// The controller that these belong to.
    pub fn info(&self) -> &'static Info {
        self.info
    }
    fn index(&self, name: &str) -> Result<usize, CongestionError> {
        self.info.params.iter().position(|param| param.name == name).ok_or_else(|| CongestionError::UnknownParameter {
            controller: self.info.name,
            name: name.into(),
            allowed: joined(self.info.params.iter().map(|param| param.name)),
        })
    }
    /// Sets one value; refuses unknown names and values out of range.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), CongestionError> {
        let index = self.index(name)?;
        let Param { name, least, most, .. } = self.info.params[index];
        if !(u64::from(least)..=u64::from(most)).contains(&value) {
            return Err(CongestionError::OutOfRange { controller: self.info.name, name, value, least, most });
        }
        self.values[index] = value as u32;
        Ok(())
    }
    /// One value.
    pub fn value(&self, name: &str) -> Result<u32, CongestionError> {
        Ok(self.values[self.index(name)?])
    }
    /// All values in the order of [`Info::params`], as the C struct and the kernel's map have them.
    pub fn values(&self) -> &[u32] {
        &self.values
    }
}
