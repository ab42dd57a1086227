// Bulk TCP flows over one bottleneck, each with access links of its own on both sides:
//
//   client j --1 Gbit/s, 1 ms-- r1 ==100 Mbit/s, 8 ms, 100 packets== r2 --1 Gbit/s, 1 ms-- server j
//
// Prints one line of JSON: parameters, goodput, drops, recoveries, and what the run cost.

#include "flow.h"

using namespace reference;

int main(int argc, char* argv[])
{
    uint32_t n = 1;
    uint32_t queue = 100;
    uint32_t accessQueue = 1000;
    double seconds = 60;
    double offsetUs = 0;
    std::string rate = "100Mbps";
    std::string accessRate = "1Gbps";
    Tcp tcp;
    CommandLine command(__FILE__);
    command.AddValue("flows", "number of flows", n);
    command.AddValue("offset", "flow j starts at j times this [us]", offsetUs);
    command.AddValue("recovery", "prr or classic", tcp.recovery);
    command.AddValue("seconds", "simulated time [s]", seconds);
    command.AddValue("queue", "packets that wait at the bottleneck", queue);
    command.AddValue("rate", "of the bottleneck", rate);
    command.AddValue("access", "rate of the access links", accessRate);
    command.Parse(argc, argv);
    NS_ABORT_MSG_IF(tcp.recovery != "prr" && tcp.recovery != "classic", "recovery is prr or classic");
    tcp.Apply();

    Network network;
    Ptr<Node> r1 = network.AddNode();
    Ptr<Node> r2 = network.AddNode();
    Network::Ends bottleneck = network.AddLink(r1, r2, rate, MilliSeconds(8), queue);
    network.Default(r1, bottleneck.atB, bottleneck.ifA);
    network.Default(r2, bottleneck.atA, bottleneck.ifB);
    for (uint32_t j = 0; j < n; ++j)
    {
        Ptr<Node> client = network.AddNode();
        Ptr<Node> server = network.AddNode();
        Network::Ends left = network.AddLink(client, r1, accessRate, MilliSeconds(1), accessQueue);
        Network::Ends right = network.AddLink(r2, server, accessRate, MilliSeconds(1), accessQueue);
        network.Default(client, left.atB, left.ifA);
        network.Default(server, right.atA, right.ifB);
        network.Host(r1, left.atA, left.atA, left.ifB);
        network.Host(r2, right.atB, right.atB, right.ifA);
        network.flows.push_back(
            std::make_unique<Flow>(client, server, right.atB, FIRST_PORT + j, 0, tcp.segment));
        network.flows.back()->StartAt(NanoSeconds(std::llround(j * offsetUs * 1000)));
    }

    Simulator::Stop(Seconds(seconds));
    double before = CpuSeconds();
    Simulator::Run();
    double cpu = CpuSeconds() - before;

    Line line;
    line.Number("flows", uint64_t{n});
    line.Number("offset_us", offsetUs, 0);
    tcp.Describe(line);
    line.Number("queue", uint64_t{queue});
    line.Number("simulated_s", seconds, 0);
    std::vector<uint64_t> goodput;
    std::vector<double> firstDrops;
    for (const auto& flow : network.flows)
    {
        goodput.push_back(std::llround(flow->received * 8 / seconds));
        firstDrops.push_back(flow->firstDrop);
    }
    line.Number("goodput_bps", std::llround(network.Sum(&Flow::received) * 8 / seconds), 0);
    line.Numbers("goodputs_bps", goodput);
    line.Number("bottleneck_packets", bottleneck.deviceA->sent);
    line.Number("bottleneck_drops", bottleneck.deviceA->drops);
    line.Number("drops", network.Drops());
    line.Moment("first_drop_s", network.FirstDrop());
    line.Moments("first_drops_s", firstDrops);
    line.Number("timeouts", network.Sum(&Flow::timeouts));
    line.Number("loss_states", network.Sum(&Flow::losses));
    line.Number("fast_recoveries", network.Sum(&Flow::fastRecoveries));
    line.Number("retransmits", network.Sum(&Flow::retransmits));
    line.Number("events", Simulator::GetEventCount());
    line.Number("link_packets", network.LinkPackets());
    line.Number("cpu_s", cpu, 3);
    line.Number("link_packets_per_cpu_s", network.LinkPackets() / cpu, 0);
    line.Print();
    Simulator::Destroy();
    return 0;
}
