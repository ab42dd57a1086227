// One transfer, split evenly over k TCP flows between the same two nodes:
//
//   client --100 Mbit/s, 1 ms-- r1 ==5 Mbit/s, 73 ms, 50 packets== r2 --100 Mbit/s, 1 ms-- server
//
// Two TCP settings: `modern` (ns-3's defaults) and `paper` (no SACK, no delayed ACK, window of 1, initial slow start
// threshold 65535 B, segments of 1400 B). Prints one line of JSON; runs until every flow is done.

#include "flow.h"

using namespace reference;

int main(int argc, char* argv[])
{
    uint32_t k = 1;
    uint64_t bytes = 1000000;
    uint32_t queue = 50;
    double offsetUs = 0;
    std::string setting = "modern";
    std::string rate = "5Mbps";
    double delayMs = 73;
    double limit = 600;
    CommandLine command(__FILE__);
    command.AddValue("flows", "number of flows", k);
    command.AddValue("bytes", "of the whole transfer", bytes);
    command.AddValue("offset", "flow j starts at j times this [us]", offsetUs);
    command.AddValue("setting", "modern or paper", setting);
    command.AddValue("queue", "packets that wait at the bottleneck", queue);
    command.AddValue("rate", "of the bottleneck", rate);
    command.AddValue("delay", "of the bottleneck, one way [ms]", delayMs);
    command.Parse(argc, argv);
    NS_ABORT_MSG_IF(setting != "modern" && setting != "paper", "setting is modern or paper");

    Tcp tcp;
    if (setting == "paper")
    {
        tcp.segment = 1400;
        tcp.initialWindow = 1;
        tcp.initialSsthresh = 65535;
        tcp.delayedAck = 1;
        tcp.sack = false;
    }
    tcp.Apply();

    Network network;
    Ptr<Node> client = network.AddNode();
    Ptr<Node> r1 = network.AddNode();
    Ptr<Node> r2 = network.AddNode();
    Ptr<Node> server = network.AddNode();
    Network::Ends left = network.AddLink(client, r1, "100Mbps", MilliSeconds(1), 1000);
    Network::Ends middle =
        network.AddLink(r1, r2, rate, NanoSeconds(std::llround(delayMs * 1e6)), queue);
    Network::Ends right = network.AddLink(r2, server, "100Mbps", MilliSeconds(1), 1000);
    network.Default(client, left.atB, left.ifA);
    network.Default(r1, middle.atB, middle.ifA);
    network.Default(r2, middle.atA, middle.ifB);
    network.Default(server, right.atA, right.ifB);
    network.Host(r1, left.atA, left.atA, left.ifB);
    network.Host(r2, right.atB, right.atB, right.ifA);
    for (uint32_t j = 0; j < k; ++j)
    {
        // the first flows carry a byte more where it does not divide
        uint64_t share = bytes / k + (j < bytes % k ? 1 : 0);
        network.flows.push_back(
            std::make_unique<Flow>(client, server, right.atB, FIRST_PORT + j, share, tcp.segment));
        network.flows.back()->StartAt(NanoSeconds(std::llround(j * offsetUs * 1000)));
    }

    Simulator::Stop(Seconds(limit));
    Simulator::Run();

    Line line;
    line.Text("setting", setting);
    line.Number("bytes", bytes);
    line.Number("flows", uint64_t{k});
    line.Number("offset_us", offsetUs, 0);
    std::vector<double> completions;
    double last = 0;
    for (const auto& flow : network.flows)
    {
        completions.push_back(flow->completed);
        last = flow->completed < 0 || last < 0 ? -1 : std::max(last, flow->completed);
    }
    line.Moment("completion_s", last);
    line.Moments("completions_s", completions);
    line.Number("drops", network.Drops());
    line.Moment("first_drop_s", network.FirstDrop());
    line.Number("timeouts", network.Sum(&Flow::timeouts));
    line.Number("retransmits", network.Sum(&Flow::retransmits));
    line.Number("fast_recoveries", network.Sum(&Flow::fastRecoveries));
    line.Print();
    Simulator::Destroy();
    return 0;
}
