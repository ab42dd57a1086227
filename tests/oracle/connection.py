"""The driver of an oracle: a connection, what TCP does around the hooks, what its subflows tell each other."""

from __future__ import annotations

from oracle.tcp import (
    ACK,
    GROW,
    IDLE,
    JOIN,
    LEAVE,
    LOSS,
    RECOVERED,
    RESTART,
    SEND,
    SILENT,
    TIMEOUT,
    TX_START,
    UNDO,
    Control,
    Event,
    Flow,
    Peer,
    Ties,
    whole,
)


class Connection:
    """The driver: one connection, its subflows and what they tell each other, event by event."""

    def __init__(self, control: type[Control], params: dict[str, int], flips: frozenset[int] = frozenset()) -> None:
        self.control, self.params, self.ties = control, params, Ties(flips)
        self.subflows: dict[int, Control] = {}
        self.peers: dict[int, Peer] = {}
        self.joins = 0
        self.now = 0

    def meet(self, flow: Flow, take: bool = False) -> None:
        mail = self.peers[flow.slot].mail
        flow.mail = mail if take else 0.0
        left = 0.0 if take else mail
        words = (tuple(flow.word), flow.told)
        self.peers[flow.slot] = Peer(flow.w, flow.ssthresh, flow.srtt, flow.in_flight, left, *words)
        flow.peers, flow.joins = dict(self.peers), self.joins

    def deliver(self, flow: Flow) -> None:
        if flow.post and flow.post[0] in self.peers:
            to, packets = flow.post
            self.peers[to] = self.peers[to]._replace(mail=self.peers[to].mail + packets)
        flow.post = None

    def join(self, e: Event) -> Control:
        flow = Flow(e.mss, float(max(e.acked, 1)))
        flow.see(self.now, e)
        flow.slot = next(slot for slot in range(16) if slot not in self.peers)
        self.joins += 1
        self.peers[flow.slot] = Peer(flow.w, flow.ssthresh, flow.srtt, flow.in_flight, 0.0, (0.0, 0.0))
        flow.peers, flow.joins = dict(self.peers), self.joins
        own = self.subflows[e.subflow] = self.control(flow, self.params, self.ties)
        own.init()
        self.deliver(flow)
        self.meet(flow)
        return own

    def step(self, e: Event) -> tuple[float, float]:
        """One event; the window of its subflow after it, and the first word that it publishes."""
        self.now += e.advance_us
        own = self.join(e) if e.kind == JOIN else self.subflows[e.subflow]
        if e.kind != JOIN:
            own.flow.see(self.now, e)
            self.tell(own, e)
        self.ties.event += 1
        return own.window(), own.flow.word[0]

    def tell(self, own: Control, e: Event) -> None:
        """What TCP does at the event around the controller's hooks."""
        flow = own.flow
        if e.kind == ACK:
            own.ack(e)
        elif e.kind == GROW:
            own.ack(e)
            self.meet(flow, take=True)
            own.grow(e)
            self.deliver(flow)
        elif e.kind in (LOSS, TIMEOUT):
            flow.cwnd, flow.count, flow.undone = flow.w, 0.0, False
            self.meet(flow)
            flow.prior = flow.cwnd
            flow.prior_ssthresh = max(flow.ssthresh, whole(flow.w / 2) + whole(flow.w / 4))
            flow.ssthresh = own.ssthresh()
            if e.kind == TIMEOUT:
                own.event(TIMEOUT)
                flow.cwnd = 1.0
                self.meet(flow)
        elif e.kind == RECOVERED:
            if not flow.undone:
                flow.cwnd = flow.ssthresh
            own.event(RECOVERED)
            self.meet(flow)
        elif e.kind == UNDO:
            flow.cwnd = own.undo()
            flow.ssthresh, flow.undone = flow.prior_ssthresh, True
        elif e.kind == SILENT:
            flow.cwnd, flow.count = 1.0, 0.0
        elif e.kind == IDLE:
            own.event(IDLE)
            packets = flow.w
            flow.ssthresh = max(flow.ssthresh, whole(packets / 2) + whole(packets / 4))
            flow.cwnd = max(whole(packets / 2.0 ** min(e.acked, 31)), min(flow.cwnd, RESTART))
        elif e.kind == TX_START:
            own.event(TX_START)
        elif e.kind == SEND:
            own.send()
        elif e.kind == LEAVE:
            del self.peers[flow.slot]
            del self.subflows[e.subflow]
