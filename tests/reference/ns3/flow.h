// What the reference programs share: a link without a traffic-control queue, a TCP flow that counts what happens to
// it, and a line of JSON. Built against an installed ns-3, see `build`.

#ifndef PATHCAST_REFERENCE_FLOW_H
#define PATHCAST_REFERENCE_FLOW_H

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace reference
{

using namespace ns3;

constexpr uint16_t FIRST_PORT = 5000;

/// CPU time of this process [s].
inline double CpuSeconds()
{
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

/// One JSON object on one line; numbers as they were formatted.
class Line
{
  public:
    void Number(const std::string& key, double value, int digits)
    {
        char text[64];
        std::snprintf(text, sizeof text, "%.*f", digits, value);
        Raw(key, text);
    }

    void Number(const std::string& key, uint64_t value)
    {
        Raw(key, std::to_string(value));
    }

    void Flag(const std::string& key, bool value)
    {
        Raw(key, value ? "true" : "false");
    }

    void Text(const std::string& key, const std::string& value)
    {
        Raw(key, "\"" + value + "\"");
    }

    /// A time, or null where it is negative: it never happened.
    void Moment(const std::string& key, double seconds)
    {
        Raw(key, Format(seconds));
    }

    void Moments(const std::string& key, const std::vector<double>& seconds)
    {
        std::string list;
        for (double one : seconds)
        {
            list += (list.empty() ? "" : ",") + Format(one);
        }
        Raw(key, "[" + list + "]");
    }

    void Numbers(const std::string& key, const std::vector<uint64_t>& values)
    {
        std::string list;
        for (uint64_t one : values)
        {
            list += (list.empty() ? "" : ",") + std::to_string(one);
        }
        Raw(key, "[" + list + "]");
    }

    void Print() const
    {
        std::printf("{%s}\n", m_body.c_str());
    }

  private:
    static std::string Format(double seconds)
    {
        if (seconds < 0)
        {
            return "null";
        }
        char text[32];
        std::snprintf(text, sizeof text, "%.6f", seconds);
        return text;
    }

    void Raw(const std::string& key, const std::string& value)
    {
        m_body += (m_body.empty() ? "\"" : ",\"") + key + "\":" + value;
    }

    std::string m_body;
};

/// A sender on one node and a receiver on another, one TCP connection between them.
class Flow
{
  public:
    uint64_t received = 0;
    double firstDrop = -1; // [s], first packet of this flow (data or acknowledgement) that a queue refused
    double completed = -1; // [s] from time 0, when the last byte was received
    uint64_t drops = 0;
    uint64_t retransmits = 0;
    uint64_t timeouts = 0;
    uint64_t losses = 0; // entries into the loss state: timeouts without the repeated ones
    uint64_t fastRecoveries = 0;

    /// `bytes` 0: greedy, until the simulation ends.
    Flow(Ptr<Node> client, Ptr<Node> server, Ipv4Address address, uint16_t port, uint64_t bytes, uint32_t segment)
        : m_bytes(bytes),
          m_segment(segment),
          m_server(address, port)
    {
        m_listener = Socket::CreateSocket(server, TcpSocketFactory::GetTypeId());
        m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Flow::Accepted, this));
        m_socket = Socket::CreateSocket(client, TcpSocketFactory::GetTypeId());
        m_socket->Bind();
        m_socket->SetConnectCallback(MakeCallback(&Flow::Connected, this), MakeNullCallback<void, Ptr<Socket>>());
        m_socket->SetSendCallback(MakeCallback(&Flow::Room, this));
        m_socket->TraceConnectWithoutContext("Tx", MakeCallback(&Flow::Sent, this));
        m_socket->TraceConnectWithoutContext("RTO", MakeCallback(&Flow::RtoChanged, this));
        m_socket->TraceConnectWithoutContext("CongState", MakeCallback(&Flow::StateChanged, this));
    }

    void StartAt(Time start)
    {
        Simulator::Schedule(start, &Flow::Connect, this);
    }

    void Dropped()
    {
        ++drops;
        if (firstDrop < 0)
        {
            firstDrop = Simulator::Now().GetSeconds();
        }
    }

  private:
    void Connect()
    {
        m_socket->Connect(m_server);
    }

    void Connected(Ptr<Socket>)
    {
        m_connected = true;
        Fill();
    }

    void Room(Ptr<Socket>, uint32_t)
    {
        if (m_connected)
        {
            Fill();
        }
    }

    /// Hands over whole segments while the buffer takes them; the last one may be shorter, and the FIN rides on it.
    void Fill()
    {
        while (!m_closed)
        {
            uint64_t left = m_bytes == 0 ? m_segment : m_bytes - m_written;
            uint32_t size = static_cast<uint32_t>(std::min<uint64_t>(left, m_segment));
            if (size == 0)
            {
                m_closed = true;
                m_socket->Close();
            }
            else if (m_socket->GetTxAvailable() < size || m_socket->Send(Create<Packet>(size)) < 0)
            {
                return;
            }
            else
            {
                m_written += size;
            }
        }
    }

    void Accepted(Ptr<Socket> socket, const Address&)
    {
        socket->SetRecvCallback(MakeCallback(&Flow::Readable, this));
    }

    void Readable(Ptr<Socket> socket)
    {
        while (Ptr<Packet> packet = socket->Recv())
        {
            if (packet->GetSize() == 0)
            {
                return;
            }
            received += packet->GetSize();
        }
        if (m_bytes != 0 && received == m_bytes && completed < 0)
        {
            completed = Simulator::Now().GetSeconds();
        }
    }

    void Sent(const Ptr<const Packet> packet, const TcpHeader& header, const Ptr<const TcpSocketBase>)
    {
        if (packet->GetSize() == 0)
        {
            return;
        }
        SequenceNumber32 end = header.GetSequenceNumber() + packet->GetSize();
        if (m_sentAny && header.GetSequenceNumber() < m_highest)
        {
            ++retransmits;
        }
        m_highest = m_sentAny ? std::max(m_highest, end) : end;
        m_sentAny = true;
    }

    /// ns-3 has no trace for a timeout; every one doubles the timer, and nothing else does exactly that.
    void RtoChanged(Time before, Time after)
    {
        if (before.IsStrictlyPositive() && after == before + before)
        {
            ++timeouts;
        }
    }

    void StateChanged(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t after)
    {
        fastRecoveries += after == TcpSocketState::CA_RECOVERY;
        losses += after == TcpSocketState::CA_LOSS;
    }

    uint64_t m_bytes;
    uint32_t m_segment;
    InetSocketAddress m_server;
    Ptr<Socket> m_listener;
    Ptr<Socket> m_socket;
    uint64_t m_written = 0;
    bool m_connected = false;
    bool m_closed = false;
    bool m_sentAny = false;
    SequenceNumber32 m_highest;
};

/// What one device has sent and refused.
struct Device
{
    uint64_t sent = 0;
    uint64_t drops = 0;
    double firstDrop = -1;
};

/// Nodes, links, addresses and routes; counts what every device does.
class Network
{
  public:
    std::vector<std::unique_ptr<Device>> devices; // two for each link: at `a`, at `b`
    std::vector<std::unique_ptr<Flow>> flows;     // flow j has port FIRST_PORT + j

    Network()
    {
        // Static routes only, and no IPv6: the least work for ns-3.
        m_stack.SetRoutingHelper(m_routes);
        m_stack.SetIpv6StackInstall(false);
        m_addresses.SetBase("10.0.0.0", "255.255.255.252");
    }

    Ptr<Node> AddNode()
    {
        Ptr<Node> node = CreateObject<Node>();
        m_stack.Install(node);
        return node;
    }

    struct Ends
    {
        Ipv4Address atA, atB;
        uint32_t ifA, ifB;
        Device* deviceA;
        Device* deviceB;
    };

    /// A full-duplex link; `queue` packets wait at each of its devices, and one more is in transmission. With `disc` packets
    /// from a to b wait in that queue disc, and only one of them at the device; its statistics are `root`'s.
    Ends AddLink(Ptr<Node> a, Ptr<Node> b, const std::string& rate, Time delay, uint32_t queue,
                 TrafficControlHelper* disc = nullptr, Ptr<QueueDisc>* root = nullptr)
    {
        PointToPointHelper link;
        // Without flow control a device has no NetDeviceQueueInterface, and the address helper below then installs no
        // queue disc: packets wait at the device, in its drop-tail queue, and nowhere else.
        if (!disc)
        {
            link.DisableFlowControl();
        }
        link.SetDeviceAttribute("DataRate", StringValue(rate));
        link.SetChannelAttribute("Delay", TimeValue(delay));
        link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, disc ? 1 : queue)));
        NetDeviceContainer pair = link.Install(a, b);
        if (disc)
        {
            *root = disc->Install(pair.Get(0)).Get(0);
            TrafficControlHelper fifo;
            fifo.SetRootQueueDisc("ns3::FifoQueueDisc");
            fifo.Install(pair.Get(1));
        }
        Ipv4InterfaceContainer interfaces = m_addresses.Assign(pair);
        m_addresses.NewNetwork();
        for (uint32_t end = 0; end < 2; ++end)
        {
            NS_ABORT_MSG_IF(!disc && pair.Get(end)->GetNode()->GetObject<TrafficControlLayer>()->GetRootQueueDiscOnDevice(
                                pair.Get(end)),
                            "a queue disc was installed");
            devices.push_back(std::make_unique<Device>());
            Device* device = devices.back().get();
            pair.Get(end)->TraceConnectWithoutContext("PhyTxBegin", MakeBoundCallback(&Network::Transmits, device));
            pair.Get(end)->TraceConnectWithoutContext("MacTxDrop", MakeBoundCallback(&Network::Refuses, this, device));
        }
        return {interfaces.GetAddress(0), interfaces.GetAddress(1), interfaces.Get(0).second, interfaces.Get(1).second,
                devices[devices.size() - 2].get(), devices.back().get()};
    }

    void Default(Ptr<Node> node, Ipv4Address next, uint32_t interface)
    {
        m_routes.GetStaticRouting(node->GetObject<Ipv4>())->SetDefaultRoute(next, interface);
    }

    void Host(Ptr<Node> node, Ipv4Address host, Ipv4Address next, uint32_t interface)
    {
        m_routes.GetStaticRouting(node->GetObject<Ipv4>())->AddHostRouteTo(host, next, interface);
    }

    /// Packets that all devices have sent.
    uint64_t LinkPackets() const
    {
        uint64_t sum = 0;
        for (const auto& device : devices)
        {
            sum += device->sent;
        }
        return sum;
    }

    uint64_t Drops() const
    {
        uint64_t sum = 0;
        for (const auto& device : devices)
        {
            sum += device->drops;
        }
        return sum;
    }

    double FirstDrop() const
    {
        double first = -1;
        for (const auto& device : devices)
        {
            if (device->firstDrop >= 0 && (first < 0 || device->firstDrop < first))
            {
                first = device->firstDrop;
            }
        }
        return first;
    }

    uint64_t Sum(uint64_t Flow::*counter) const
    {
        uint64_t sum = 0;
        for (const auto& flow : flows)
        {
            sum += (*flow).*counter;
        }
        return sum;
    }

  private:
    static void Transmits(Device* device, Ptr<const Packet>)
    {
        ++device->sent;
    }

    static void Refuses(Network* network, Device* device, Ptr<const Packet> packet)
    {
        ++device->drops;
        if (device->firstDrop < 0)
        {
            device->firstDrop = Simulator::Now().GetSeconds();
        }
        Ptr<Packet> copy = packet->Copy();
        PppHeader ppp;
        Ipv4Header ip;
        TcpHeader tcp;
        copy->RemoveHeader(ppp);
        copy->RemoveHeader(ip);
        copy->RemoveHeader(tcp);
        // the server's port is one of ours, the client's is ephemeral (49152 and above)
        uint16_t port = std::min(tcp.GetSourcePort(), tcp.GetDestinationPort());
        network->flows.at(port - FIRST_PORT)->Dropped();
    }

    InternetStackHelper m_stack;
    Ipv4StaticRoutingHelper m_routes;
    Ipv4AddressHelper m_addresses;
};

/// How TCP behaves; everything else is ns-3's default.
struct Tcp
{
    uint32_t segment = 1448;
    uint32_t initialWindow = 10;
    uint32_t initialSsthresh = UINT32_MAX;
    uint32_t delayedAck = 2;
    bool sack = true;
    bool timestamps = true;
    std::string recovery = "prr";

    void Apply() const
    {
        Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
        Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                           StringValue(recovery == "classic" ? "ns3::TcpClassicRecovery" : "ns3::TcpPrrRecovery"));
        Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
        Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(initialWindow));
        Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(initialSsthresh));
        Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(delayedAck));
        Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
        Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(timestamps));
        Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
        // never the limit: more than four times the largest window of any run
        Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
        Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
    }

    void Describe(Line& line) const
    {
        line.Number("segment", uint64_t{segment});
        line.Number("initial_window", uint64_t{initialWindow});
        line.Number("delayed_ack", uint64_t{delayedAck});
        line.Flag("sack", sack);
        line.Text("recovery", recovery);
    }
};

} // namespace reference

#endif
