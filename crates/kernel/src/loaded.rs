//! A controller in the kernel: loaded, changed while it runs, read, unloaded.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use libbpf_rs::{Link, MapCore, MapType, OpenObject};
use pathcast_congestion::{Info, Params, controller};

use crate::cost::ProgramCost;
use crate::error::KernelError;
use crate::flows::{Counts, FlowView, PathSum, ROW_BYTES, SUM_BYTES};
use crate::maps::{FIRST, GROUPS, LAYOUT, Maps, size};
use crate::object::{attach, has_source, load, names, object, ready, registered};
use crate::pins::{self, Pin};

const PLACEHOLDER: &str = "pc_placeholder";
/// The controllers that can run in the kernel, whether or not this machine and this build can load them: see [`ready`].
pub fn controllers_in_kernel() -> impl Iterator<Item = &'static Info> {
    pathcast_congestion::controllers().iter().filter(|info| has_source(info.name))
}

/// A name under which the controller can be registered now: its own, or with `_2` to `_99` behind it if that is taken.
///
/// # Errors
/// Usage: all are taken.
pub fn free_name(info: &Info) -> Result<String, KernelError> {
    let taken = registered();
    std::iter::once(info.kernel_name.to_owned())
        .chain((2..100).map(|n| format!("{}_{n}", info.kernel_name)))
        .find(|name| !taken.contains(name))
        .ok_or_else(|| KernelError::InUse { name: info.kernel_name.into() })
}

/// How to load a controller; [`load`](Request::load) does it.
#[derive(Clone, Debug)]
pub struct Request {
    name: String,
    params: Params,
    pin: Option<PathBuf>,
    entries: Option<u32>,
}

impl Request {
    /// The controller and parameters of `params`, to be registered as `name`: 1 to 15 characters, free in this kernel.
    pub fn new(name: &str, params: &Params) -> Request {
        Request { name: name.into(), params: params.clone(), pin: None, entries: None }
    }
    /// Lets it stay when its [`Loaded`] is dropped, pinned as a directory of that path below a mounted bpffs; see
    /// [`pin_root`](crate::pin_root).
    pub fn pin(mut self, at: impl Into<PathBuf>) -> Request {
        self.pin = Some(at.into());
        self
    }
    /// Room for so many connections, and for so many live flows in the list; else 65536 of each.
    pub fn entries(mut self, n: u32) -> Request {
        self.entries = Some(n);
        self
    }

    /// Brings it into the kernel.
    ///
    /// # Errors
    /// Missing: clang when this crate was built, a privilege, a kernel feature. Usage: a name that the kernel cannot take
    /// or that is in use, a controller that is not for the kernel. Runtime: what the kernel refused.
    pub fn load(&self) -> Result<Loaded, KernelError> {
        ready()?;
        let info = self.params.info();
        let bytes = object(info.name).ok_or_else(|| KernelError::NotInKernel {
            name: info.name.into(),
            allowed: controllers_in_kernel().map(|info| info.name).collect::<Vec<_>>().join(", "),
        })?;
        let pin = self.pin.as_deref().map(|at| Pin::reserve(at, &self.name)).transpose()?;
        let mut object = load(bytes, PLACEHOLDER, &self.name, |open| self.prepare(open))?;
        let maps = Maps::of(&object)?;
        maps.introduce(info.name)?;
        let costs = ProgramCost::of(&object);
        let mut link = attach(&mut object, &self.name)?;
        if let Some(pin) = &pin {
            pin.fill(&maps.0, &mut link)?;
        }
        Ok(Loaded {
            link,
            maps,
            name: self.name.clone(),
            controller: info.name.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            pin: self.pin.clone(),
            costs,
        })
    }

    fn prepare(&self, open: &mut OpenObject) -> Result<(), KernelError> {
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if names(&name, ".data") {
                let values: Vec<u8> = self.params.values().iter().flat_map(|value| value.to_ne_bytes()).collect();
                let data = map.initial_value_mut().unwrap_or_default();
                if data.len() != values.len() {
                    return Err(size("setting the parameters", data.len(), values.len()));
                }
                data.copy_from_slice(&values);
            } else if let (MapType::Hash, Some(n), true) =
                (map.map_type(), self.entries, name == GROUPS || name == "flows")
            {
                map.set_max_entries(n).map_err(|e| KernelError::refused(format!("the size of `{name}`"), e))?;
            }
        }
        Ok(())
    }
}

/// A controller in the kernel. Dropped, it is unregistered unless it is pinned; sockets that use it keep it until they end.
pub struct Loaded {
    link: Link,
    maps: Maps,
    name: String,
    controller: String,
    version: String,
    pin: Option<PathBuf>,
    costs: Vec<ProgramCost>,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded").field("name", &self.name).field("pin", &self.pin).finish_non_exhaustive()
    }
}

impl Loaded {
    /// Loads the controller of `params` as `name`, pinned at `pin` if that is given: [`Request`] in short.
    ///
    /// # Errors
    /// As [`Request::load`].
    pub fn load(name: &str, params: &Params, pin: Option<&Path>) -> Result<Loaded, KernelError> {
        let request = Request::new(name, params);
        match pin {
            Some(at) => request.pin(at).load(),
            None => request.load(),
        }
    }

    /// The controller that is pinned at `at`.
    ///
    /// # Errors
    /// Usage: nothing is pinned there, or something else. Runtime: the kernel's refusal, or a version of pathcast pinned
    /// it whose maps this one cannot read.
    pub fn open(at: &Path) -> Result<Loaded, KernelError> {
        let (link, maps) = pins::open(at)?;
        let maps = Maps(maps);
        let (layout, controller, version) = maps.about()?;
        if layout != LAYOUT {
            let why =
                format!("version {version} of pathcast pinned it; unload it with that one, or by `pathcast undo`");
            return Err(KernelError::refused(format!("reading {}", at.display()), why));
        }
        let name = at.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Loaded { link, maps, name, controller, version, pin: Some(at.into()), costs: Vec::new() })
    }

    /// Its name in the kernel, for `TCP_CONGESTION`.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Which controller it is, by the name of its header.
    pub fn controller(&self) -> &str {
        &self.controller
    }
    /// The version of pathcast that loaded it.
    pub fn version(&self) -> &str {
        &self.version
    }
    /// Where it is pinned.
    pub fn pinned(&self) -> Option<&Path> {
        self.pin.as_deref()
    }
    /// Its programs, as the kernel's verifier saw them; none of one that was opened.
    pub fn costs(&self) -> &[ProgramCost] {
        &self.costs
    }
    fn info(&self) -> Result<&'static Info, KernelError> {
        Ok(controller(&self.controller)?)
    }

    /// The parameters in force.
    ///
    /// # Errors
    /// Runtime: the map cannot be read, or is that of a controller with other parameters.
    pub fn params(&self) -> Result<Params, KernelError> {
        let info = self.info()?;
        let mut params = Params::new(info);
        let bytes = self.maps.read("params", &FIRST)?.unwrap_or_default();
        if bytes.len() != 4 * info.params.len() {
            return Err(size("reading the parameters", bytes.len(), 4 * info.params.len()));
        }
        for (param, value) in info.params.iter().zip(bytes.chunks_exact(4)) {
            let value = u32::from_ne_bytes(value.try_into().expect("chunks of four"));
            params.set(param.name, value.into())?;
        }
        Ok(params)
    }

    /// Changes parameters while flows live: they have force from each flow's next call on.
    ///
    /// # Errors
    /// Usage: an unknown parameter or a value out of range; nothing is changed then. Runtime: the kernel's refusal.
    pub fn set(&self, changes: &[(&str, u64)]) -> Result<Params, KernelError> {
        let mut params = self.params()?;
        for (name, value) in changes {
            params.set(name, *value)?;
        }
        let bytes: Vec<u8> = params.values().iter().flat_map(|value| value.to_ne_bytes()).collect();
        self.maps.write("params", &bytes)?;
        Ok(params)
    }

    /// The live flows, by their numbers.
    ///
    /// # Errors
    /// Runtime: the list cannot be read.
    pub fn flows(&self) -> Result<Vec<FlowView>, KernelError> {
        let state_bytes = self.info()?.state_bytes;
        let mut views = BTreeMap::new(); // a flow may come twice while others end
        for key in self.maps.get("flows").keys() {
            let id = u64::from_ne_bytes(key.as_slice().try_into().unwrap_or_default());
            if let Some(row) = self.maps.read("flows", &key)? {
                let view = FlowView::read(&self.controller, state_bytes, id, &row);
                views.insert(id, view.ok_or_else(|| size("reading `flows`", row.len(), ROW_BYTES))?);
            }
        }
        Ok(views.into_values().collect())
    }

    /// What the flows that have ended did, by path.
    ///
    /// # Errors
    /// Runtime: the sums cannot be read.
    pub fn paths(&self) -> Result<Vec<PathSum>, KernelError> {
        let mut sums = BTreeMap::new();
        for key in self.maps.get("sums").keys() {
            if let Some(value) = self.maps.read("sums", &key)? {
                let sum = PathSum::read(&key, &value);
                let sum = sum.ok_or_else(|| size("reading `sums`", value.len(), SUM_BYTES))?;
                sums.insert((sum.local, sum.remote), sum);
            }
        }
        Ok(sums.into_values().collect())
    }

    /// MPTCP connections whose subflows it couples now.
    pub fn connections(&self) -> usize {
        self.maps.0.get(GROUPS).map_or(0, |map| map.keys().count())
    }

    /// What was counted since it was loaded.
    ///
    /// # Errors
    /// Runtime: the counts cannot be read.
    pub fn counts(&self) -> Result<Counts, KernelError> {
        let bytes = self.maps.read("counts", &FIRST)?.unwrap_or_default();
        Counts::read(&bytes).ok_or_else(|| size("reading the counts", bytes.len(), size_of::<Counts>()))
    }

    /// Unregisters it, and removes its pins. Sockets that use it keep it until they end.
    ///
    /// # Errors
    /// Runtime: a pin cannot be removed.
    pub fn unload(self) -> Result<(), KernelError> {
        let Loaded { link, pin, .. } = self;
        drop(link); // alone, this ends one that is not pinned
        match pin {
            Some(at) => pins::remove(&at),
            None => Ok(()),
        }
    }

    /// A descriptor of the link, to be held by whoever keeps the controller registered.
    pub fn link_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.link.as_fd()
    }
}
