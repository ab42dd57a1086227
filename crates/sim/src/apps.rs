//! Who sends: the scenario's flows, greedy connections and web clients beside them.

use pathcast_base::Stream;
use pathcast_scenario::{End, Source as Kind, Web, Workload};

use crate::carried::{Carried, SubReport, merge};
use crate::conn::Owner;
use crate::handshake::Wanted;
use crate::observe::Observer;
use crate::sim::{Plan, Sim};

/// Pages of web clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pages {
    pub bytes: u64,
    /// Of each page [ns].
    pub times: Vec<u64>,
}

/// A flow of the scenario, or one that was added.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub name: String,
    pub wanted: Wanted,
    pub web: Option<Web>,
    pub start: u64,
    pub stop: Option<u64>,
    pub conn: Option<u32>,
    /// When the sender knew that all had arrived, and when the last byte did [ns].
    pub completed: Option<u64>,
    pub delivered_at: Option<u64>,
    /// Given up: no path answered.
    pub failed: bool,
    /// When it was stopped, and what had arrived then.
    pub stopped: Option<(u64, u64)>,
    pub carried: Carried,
    pub subs: Vec<SubReport>,
    pub pages: Pages,
}

/// Traffic of real connections.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub name: String,
    pub wanted: Wanted,
    pub web: Option<Web>,
    pub stop: Option<u64>,
    /// Connections yet to be opened, and the time between two [ns].
    left: u32,
    stagger: u64,
    quiet: bool,
    pub conns: Vec<u32>,
    pub connections: u64,
    pub carried: Carried,
    pub pages: Pages,
}

/// A web client: thinks, fetches, thinks.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// Its flow, or its source.
    of: Of,
    web: Web,
    stream: Stream,
    bytes: u64,
    started: u64,
    busy: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Flow(u32),
    Source(u32),
}

impl Client {
    /// Its flow, if it is one of a flow.
    pub(crate) fn flow(&self) -> Option<u32> {
        if let Of::Flow(index) = self.of { Some(index) } else { None }
    }

    /// Its source, if it is one of a source.
    pub(crate) fn source(&self) -> Option<u32> {
        if let Of::Source(index) = self.of { Some(index) } else { None }
    }
}

impl<O: Observer> Sim<O> {
    /// Other random numbers from now on; what is drawn already stays, as when a client asks for its next page.
    pub(crate) fn reseed(&mut self, seed: u64) {
        self.scenario.seed = seed;
        self.network.reseed(self.now, seed);
        self.clients.iter_mut().for_each(|client| client.stream.reseed(seed));
    }

    /// Plans the scenario's flows.
    pub(crate) fn make_flows(&mut self) {
        for i in 0..self.scenario.flows.len() {
            let flow = &self.scenario.flows[i];
            let paths: Vec<usize> = flow.subflow_paths().collect();
            let (bytes, web) = match flow.workload {
                Workload::Bytes(bytes) => (Some(bytes.0), None),
                Workload::Greedy => (None, None),
                Workload::Web(web) => (None, Some(web)),
            };
            let wanted = Wanted {
                owner: Owner::Flow(i as u32),
                multipath: flow.is_multipath(),
                paths,
                to: End::Server,
                control: self.setup.flow_control[i],
                bytes,
                steered: false,
            };
            let (name, start, stop) = (flow.name.clone(), flow.start.0, flow.stop.map(|stop| stop.0));
            self.add_flow(name, wanted, web, start, stop);
        }
    }

    /// Plans a flow; its number.
    pub(crate) fn add_flow(
        &mut self,
        name: String,
        mut wanted: Wanted,
        web: Option<Web>,
        start: u64,
        stop: Option<u64>,
    ) -> u32 {
        let index = self.flows.len() as u32;
        wanted.owner = Owner::Flow(index);
        if wanted.bytes.is_some() || stop.is_some() {
            self.unfinished += 1;
        }
        self.plan(start, Plan::Start(index));
        if let Some(stop) = stop {
            self.plan(stop, Plan::Stop(index));
        }
        self.flows.push(Flow {
            name,
            wanted,
            web,
            start,
            stop,
            conn: None,
            completed: None,
            delivered_at: None,
            failed: false,
            stopped: None,
            carried: Carried::default(),
            subs: Vec::new(),
            pages: Pages::default(),
        });
        index
    }

    pub(crate) fn make_sources(&mut self) {
        for i in 0..self.scenario.traffic.len() {
            let traffic = &self.scenario.traffic[i];
            let (path, to, count, stagger, web) = match &traffic.source {
                Kind::Virtual { .. } => continue,
                Kind::Tcp { path, to, flows, stagger, .. } => (*path, *to, *flows, stagger.0, None),
                Kind::Web { path, to, clients, web, .. } => (*path, *to, *clients, 0, Some(*web)),
            };
            let index = self.sources.len() as u32;
            let (name, start, stop) = (traffic.name.clone(), traffic.start.0, traffic.stop.map(|stop| stop.0));
            let wanted = Wanted {
                owner: Owner::Traffic(index),
                paths: vec![path],
                multipath: false,
                to,
                control: self.setup.traffic_control[i],
                bytes: None,
                steered: false,
            };
            if let Some(web) = web {
                for n in 0..count {
                    self.add_client(Of::Source(index), web, &format!("{name}/{n}"), start);
                }
            } else {
                self.plan(start, Plan::Connect(index));
            }
            if let Some(stop) = stop {
                self.plan(stop, Plan::Quiet(index));
            }
            self.sources.push(Source {
                name,
                wanted,
                web,
                stop,
                left: if web.is_some() { 0 } else { count },
                stagger,
                quiet: false,
                conns: Vec::new(),
                connections: 0,
                carried: Carried::default(),
                pages: Pages::default(),
            });
        }
    }

    /// A client's first page comes after some thinking, so that they do not all begin at once.
    fn add_client(&mut self, of: Of, web: Web, name: &str, start: u64) {
        let mut stream = Stream::new(self.scenario.seed, &format!("web/{name}"));
        let first = match of {
            Of::Flow(_) => start,
            Of::Source(_) => start + stream.exponential(web.think.0 as f64) as u64,
        };
        let client = self.clients.len() as u32;
        self.clients.push(Client { of, web, stream, bytes: 0, started: 0, busy: false });
        self.plan(first, Plan::Fetch(client));
    }

    pub(crate) fn start_flow(&mut self, index: u32) {
        let flow = &self.flows[index as usize];
        if let Some(web) = flow.web {
            let name = flow.name.clone();
            self.add_client(Of::Flow(index), web, &name, self.now);
            return;
        }
        let wanted = flow.wanted.clone();
        let conn = self.connect(&wanted);
        self.flows[index as usize].conn = Some(conn);
    }

    /// A flow's time is over: what has arrived by now counts.
    pub(crate) fn stop_flow(&mut self, index: u32) {
        let now = self.now;
        if self.flows[index as usize].completed.is_some() || self.flows[index as usize].failed {
            return;
        }
        if O::FLOWS {
            self.observe_flow(index as usize);
        }
        let delivered = self.delivered(index);
        self.flows[index as usize].stopped = Some((now, delivered));
        self.unfinished -= 1;
        if let Some(conn) = self.flows[index as usize].conn {
            self.conns[conn as usize].send.stop();
            if self.conns[conn as usize].send.is_done() {
                self.finish(conn);
            }
        }
    }

    /// Application bytes of a flow that have arrived in order.
    pub(crate) fn delivered(&self, index: u32) -> u64 {
        let flow = &self.flows[index as usize];
        let live = flow.conn.map_or(0, |conn| {
            let conn = &self.conns[conn as usize];
            conn.send.bytes_until(conn.receive.nxt)
        });
        flow.carried.delivered + live
    }

    pub(crate) fn connect_source(&mut self, index: u32) {
        let source = &mut self.sources[index as usize];
        if source.left == 0 || source.quiet {
            return;
        }
        source.left -= 1;
        let (more, stagger, wanted) = (source.left > 0, source.stagger, source.wanted.clone());
        let conn = self.connect(&wanted);
        let source = &mut self.sources[index as usize];
        source.conns.push(conn);
        source.connections += 1;
        if more {
            self.plan(self.now + stagger, Plan::Connect(index));
        }
    }

    pub(crate) fn quiet_source(&mut self, index: u32) {
        self.sources[index as usize].quiet = true;
        for conn in self.sources[index as usize].conns.clone() {
            self.conns[conn as usize].send.stop();
            if self.conns[conn as usize].send.is_done() {
                self.finish(conn);
            }
        }
    }

    /// A client fetches its next page.
    pub(crate) fn fetch(&mut self, index: u32) {
        let client = &self.clients[index as usize];
        let (mut wanted, stopped) = match client.of {
            Of::Flow(flow) => {
                let flow = &self.flows[flow as usize];
                (flow.wanted.clone(), flow.stopped.is_some())
            }
            Of::Source(source) => {
                let source = &self.sources[source as usize];
                (source.wanted.clone(), source.quiet)
            }
        };
        if stopped {
            return;
        }
        let client = &mut self.clients[index as usize];
        client.bytes = (client.stream.pareto(client.web.shape, client.web.page.0 as f64) as u64).clamp(1, 1 << 40);
        client.started = self.now;
        client.busy = true;
        wanted.bytes = Some(client.bytes);
        wanted.owner = Owner::Page(index);
        if let Of::Source(source) = client.of {
            self.sources[source as usize].connections += 1;
        }
        self.connect(&wanted);
    }

    /// A page has arrived: its client thinks.
    fn page_done(&mut self, index: u32) {
        let now = self.now;
        let client = &mut self.clients[index as usize];
        if !client.busy {
            return;
        }
        client.busy = false;
        let (bytes, time) = (client.bytes, now - client.started);
        let think = client.stream.exponential(client.web.think.0 as f64) as u64;
        let of = client.of;
        let pages = match of {
            Of::Flow(flow) => &mut self.flows[flow as usize].pages,
            Of::Source(source) => &mut self.sources[source as usize].pages,
        };
        pages.bytes += bytes;
        pages.times.push(time);
        self.plan(now + think, Plan::Fetch(index));
    }

    /// The receiver has the whole stream.
    #[cold]
    pub(crate) fn stream_complete(&mut self, sub: u32) {
        let conn = &self.conns[self.subs[sub as usize].conn as usize];
        match conn.owner {
            Owner::Flow(flow) => {
                self.flows[flow as usize].delivered_at.get_or_insert(self.now);
            }
            Owner::Page(client) if self.receiver_end(sub) == End::Client => self.page_done(client),
            _ => {}
        }
    }

    /// The sender knows that everything has arrived.
    #[cold]
    pub(crate) fn finish(&mut self, index: u32) {
        if !self.conns[index as usize].live || self.conns[index as usize].closing {
            return;
        }
        if let Owner::Page(client) = self.conns[index as usize].owner {
            self.page_done(client); // one that sends its page
        }
        self.end(index, true);
    }

    /// No subflow is left.
    #[cold]
    pub(crate) fn fail(&mut self, index: u32) {
        if self.conns[index as usize].closing {
            return self.close(index); // all had arrived
        }
        if let Owner::Page(client) = self.conns[index as usize].owner {
            self.clients[client as usize].busy = false;
            let think = {
                let client = &mut self.clients[client as usize];
                client.stream.exponential(client.web.think.0 as f64) as u64
            };
            self.plan(self.now + think, Plan::Fetch(client));
        }
        self.end(index, false);
    }

    fn end(&mut self, index: u32, complete: bool) {
        let (carried, subs) = self.gather(index);
        match self.conns[index as usize].owner {
            Owner::Flow(flow) => {
                let now = self.now;
                let flow = &mut self.flows[flow as usize];
                flow.conn = None;
                flow.carried.add(&carried);
                flow.subs = subs;
                if flow.stopped.is_none() {
                    if complete {
                        flow.completed = Some(now);
                    } else {
                        flow.failed = true;
                    }
                    if flow.wanted.bytes.is_some() || flow.stop.is_some() {
                        self.unfinished -= 1;
                    }
                }
            }
            Owner::Page(client) => match self.clients[client as usize].of {
                Of::Flow(flow) => {
                    self.flows[flow as usize].carried.add(&carried);
                    merge(&mut self.flows[flow as usize].subs, subs);
                }
                Of::Source(source) => self.sources[source as usize].carried.add(&carried),
            },
            Owner::Traffic(source) => {
                let source = &mut self.sources[source as usize];
                source.carried.add(&carried);
                source.conns.retain(|&conn| conn != index);
            }
            Owner::Nobody => {}
        }
        if complete && self.config.fin {
            self.await_fins(index);
        } else {
            self.close(index);
        }
    }
}
