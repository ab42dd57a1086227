// Bulk TCP flows over one bottleneck with a queue disc, each with access links of its own on both sides:
//
//   client j --1 Gbit/s, 1 ms-- r1 ==50 Mbit/s, 8 ms, DISC== r2 --1 Gbit/s, 1 ms-- server j
//
// One packet waits at the device, as the disc needs; the others wait in the disc. Prints one line of JSON. Goodput, drops and
// sojourn are of the time from `from` on: how a slow start overshoots is the senders' business.

#include "flow.h"

#include "ns3/traffic-control-module.h"

using namespace reference;

namespace
{

struct Sojourn
{
    double sum = 0;
    uint64_t packets = 0;
};

void Left(Sojourn* sojourn, Time time)
{
    sojourn->sum += time.GetSeconds();
    ++sojourn->packets;
}

/// The disc as docs/evidence/ns3.md says.
void Choose(TrafficControlHelper& helper, const std::string& disc)
{
    if (disc == "codel")
    {
        helper.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", StringValue("1000p"));
    }
    else if (disc == "fq_codel")
    {
        helper.SetRootQueueDisc("ns3::FqCoDelQueueDisc", "MaxSize", StringValue("10240p"));
    }
    else if (disc == "pie")
    {
        helper.SetRootQueueDisc("ns3::PieQueueDisc", "MaxSize", StringValue("1000p"), "QueueDelayReference",
                                TimeValue(MilliSeconds(15)), "Tupdate", TimeValue(MilliSeconds(15)),
                                "MaxBurstAllowance", TimeValue(MilliSeconds(150)), "UseDerandomization",
                                BooleanValue(true), "MeanPktSize", UintegerValue(1500));
    }
    else
    {
        NS_ABORT_MSG_IF(disc != "red", "disc is codel, fq_codel, pie or red");
        // Wait: false is the spacing of drops of Floyd and Jacobson
        helper.SetRootQueueDisc("ns3::RedQueueDisc", "MaxSize", StringValue("300p"), "MinTh", DoubleValue(30), "MaxTh",
                                DoubleValue(90), "LInterm", DoubleValue(10), "QW", DoubleValue(0.002), "MeanPktSize",
                                UintegerValue(1500), "Wait", BooleanValue(false), "LinkBandwidth",
                                StringValue("50Mbps"));
    }
}

} // namespace

int main(int argc, char* argv[])
{
    uint32_t n = 1;
    double seconds = 60;
    double from = 0;
    double offsetUs = 0;
    std::string disc = "codel";
    Tcp tcp;
    CommandLine command(__FILE__);
    command.AddValue("flows", "number of flows", n);
    command.AddValue("offset", "flow j starts at j times this [us]", offsetUs);
    command.AddValue("seconds", "simulated time [s]", seconds);
    command.AddValue("from", "what is counted begins then [s]", from);
    command.AddValue("disc", "codel, fq_codel, pie or red", disc);
    command.Parse(argc, argv);
    tcp.Apply();

    Network network;
    Ptr<Node> r1 = network.AddNode();
    Ptr<Node> r2 = network.AddNode();
    TrafficControlHelper helper;
    Choose(helper, disc);
    Ptr<QueueDisc> root;
    Network::Ends bottleneck = network.AddLink(r1, r2, "50Mbps", MilliSeconds(8), 0, &helper, &root);
    Sojourn sojourn;
    root->TraceConnectWithoutContext("SojournTime", MakeBoundCallback(&Left, &sojourn));
    network.Default(r1, bottleneck.atB, bottleneck.ifA);
    network.Default(r2, bottleneck.atA, bottleneck.ifB);
    for (uint32_t j = 0; j < n; ++j)
    {
        Ptr<Node> client = network.AddNode();
        Ptr<Node> server = network.AddNode();
        Network::Ends left = network.AddLink(client, r1, "1Gbps", MilliSeconds(1), 1000);
        Network::Ends right = network.AddLink(r2, server, "1Gbps", MilliSeconds(1), 1000);
        network.Default(client, left.atB, left.ifA);
        network.Default(server, right.atA, right.ifB);
        network.Host(r1, left.atA, left.atA, left.ifB);
        network.Host(r2, right.atB, right.atB, right.ifA);
        network.flows.push_back(
            std::make_unique<Flow>(client, server, right.atB, FIRST_PORT + j, 0, tcp.segment));
        network.flows.back()->StartAt(NanoSeconds(std::llround(j * offsetUs * 1000)));
    }

    uint64_t drops = 0;
    uint64_t received = 0;
    Simulator::Schedule(Seconds(from), [&] {
        sojourn = Sojourn();
        drops = root->GetStats().nTotalDroppedPackets;
        received = network.Sum(&Flow::received);
    });
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();

    Line line;
    line.Text("disc", disc);
    line.Number("flows", uint64_t{n});
    line.Number("offset_us", offsetUs, 0);
    tcp.Describe(line);
    line.Number("simulated_s", seconds, 0);
    line.Number("from_s", from, 0);
    line.Number("goodput_bps", std::llround((network.Sum(&Flow::received) - received) * 8 / (seconds - from)), 0);
    line.Number("drops", uint64_t{root->GetStats().nTotalDroppedPackets} - drops);
    line.Number("sojourn_ms", 1000 * sojourn.sum / std::max<uint64_t>(sojourn.packets, 1), 4);
    line.Number("packets", sojourn.packets);
    line.Print();
    Simulator::Destroy();
    return 0;
}
