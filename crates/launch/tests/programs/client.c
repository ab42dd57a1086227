/* A client for the tests, linked statically and making bare system calls. The first argument says what it does; what it
 * finds goes to standard output. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MPTCP = 262 };

static int tcp(int flags) { return syscall(SYS_socket, AF_INET, SOCK_STREAM | flags, 0); }

static int protocol(int fd)
{
	int value = -1;
	socklen_t size = sizeof value;
	getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &value, &size);
	return value;
}

static int subflows; /* of each connection, before it sends much */

/* Sends a byte, and waits until so many subflows are established. */
static int joined(int fd)
{
	enum { LEVEL = 284, TCP_INFOS = 2 }; /* SOL_MPTCP, MPTCP_TCPINFO */
	struct {
		unsigned own, number, kernels, ours; /* struct mptcp_subflow_data */
		struct tcp_info flows[8];
	} info;

	if (write(fd, "", 1) != 1)
		return -1;
	for (int i = 0; i < 6000; i++) {
		socklen_t size = sizeof info;
		int established = 0;

		memset(&info, 0, sizeof info);
		info.own = offsetof(typeof(info), flows);
		info.ours = sizeof info.flows[0];
		if (getsockopt(fd, LEVEL, TCP_INFOS, &info, &size))
			return errno == EOPNOTSUPP ? 0 : -1; /* before Linux 5.16 */
		for (unsigned n = 0; n < info.number && n < 8; n++)
			established += info.flows[n].tcpi_state == TCP_ESTABLISHED;
		if (established >= subflows)
			return 0;
		usleep(10000);
	}
	return -1;
}

/* Connects, sends so many bytes and waits for the other end to close; prints protocol and controller. */
static int transfer(const char *who, const char *host, int port, long bytes)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	char control[16] = "", buffer[65536] = { 0 };
	socklen_t size = sizeof control;
	int waits = strcmp(who, "poll"), fd = tcp(waits ? 0 : SOCK_NONBLOCK);
	struct pollfd ready = { .fd = fd, .events = POLLOUT };

	inet_pton(AF_INET, host, &to.sin_addr);
	if (fd < 0 || (connect(fd, (void *)&to, sizeof to) && (waits || errno != EINPROGRESS))) {
		printf("%s failed %s\n", who, strerror(errno));
		return 1;
	}
	if (!waits && (!(fcntl(fd, F_GETFL) & O_NONBLOCK) || poll(&ready, 1, 30000) != 1 || fcntl(fd, F_SETFL, 0)))
		return 3;
	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, &size);
	if (subflows) {
		if (joined(fd)) {
			printf("%s has not joined %s\n", who, strerror(errno));
			return 1;
		}
		bytes--;
	}
	while (bytes > 0) {
		ssize_t n = write(fd, buffer, bytes < (long)sizeof buffer ? bytes : (long)sizeof buffer);
		if (n <= 0)
			break;
		bytes -= n;
	}
	shutdown(fd, SHUT_WR);
	while (read(fd, buffer, sizeof buffer) > 0)
		;
	printf("%s %d %s\n", who, protocol(fd), control);
	fflush(stdout);
	close(fd);
	return bytes != 0;
}

/* Sends at a rate of its own, and says what rate it has, first and whenever that changes. */
static int paced(const char *host, int port, long bytes)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	unsigned rate = 1000000, last = 0;
	char buffer[16384] = { 0 };
	int fd = tcp(0);

	inet_pton(AF_INET, host, &to.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
	if (connect(fd, (void *)&to, sizeof to))
		return 1;
	while (bytes > 0) {
		socklen_t size = sizeof rate;
		ssize_t n = write(fd, buffer, sizeof buffer);

		if (n <= 0 || getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &size))
			return 1;
		bytes -= n;
		if (rate != last)
			printf("%u\n", rate);
		fflush(stdout);
		last = rate;
	}
	return 0;
}

struct share {
	const char *host;
	int port;
	long connections;
	int good;
};

/* So many short connections, one after the other. */
static void *several(void *of)
{
	struct share *share = of;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(share->port) };
	char buffer[100] = "";

	inet_pton(AF_INET, share->host, &to.sin_addr);
	for (long n = share->connections; n > 0; n--) {
		int fd = tcp(0);
		if (!connect(fd, (void *)&to, sizeof to) && write(fd, buffer, sizeof buffer) == sizeof buffer) {
			shutdown(fd, SHUT_WR);
			if (read(fd, buffer, sizeof buffer) == 1)
				__sync_fetch_and_add(&share->good, 1);
		}
		close(fd);
	}
	return 0;
}

/* By four at once, since each mostly waits for the other end. */
static int many(const char *host, int port, long connections)
{
	struct share share = { host, port, connections / 4, 0 };
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], 0, several, &share);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], 0);
	printf("good %d\n", share.good);
	return 0;
}

static volatile int begun, ended;

/* Connects without blocking to hosts that do not answer, one after the other. */
static void *unanswered(void *prefix)
{
	for (int i = 1; i <= 20; i++) {
		struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
		char host[32];
		int fd = tcp(SOCK_NONBLOCK);

		snprintf(host, sizeof host, "%s.%d", (char *)prefix, i);
		inet_pton(AF_INET, host, &to.sin_addr);
		begun = 1;
		if (!connect(fd, (void *)&to, sizeof to) || errno != EINPROGRESS)
			return 0;
		ended++;
	}
	return 0;
}

/* So many short connections beside those, of which it says how many have been begun by their end; none: it waits. */
static int beside(const char *host, int port, long connections)
{
	struct share share = { host, port, connections, 0 };
	pthread_t thread;

	pthread_create(&thread, 0, unanswered, "10.9.0");
	while (!begun)
		usleep(1000);
	usleep(100000); /* it is in connect() */
	several(&share);
	if (!connections)
		pthread_join(thread, 0);
	printf("good %d ended %d\n", share.good, ended);
	return 0;
}

static void *burst(void *made)
{
	for (int i = 0; i < 25; i++) {
		int fd = tcp(i % 2 ? SOCK_CLOEXEC | SOCK_NONBLOCK : 0);
		_Bool closed = fcntl(fd, F_GETFD) & FD_CLOEXEC, waits = !(fcntl(fd, F_GETFL) & O_NONBLOCK);
		if (protocol(fd) == MPTCP && closed == i % 2 && waits == !(i % 2))
			__sync_fetch_and_add((int *)made, 1);
	}
	return 0;
}

static void nothing(int signal) { (void)signal; }

/* 200 sockets from 8 threads, while a timer interrupts system calls. */
static int bursts(void)
{
	struct sigaction action = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 500 }, { 0, 500 } };
	pthread_t threads[8];
	int made = 0;

	sigaction(SIGALRM, &action, 0);
	setitimer(ITIMER_REAL, &often, 0);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], 0, burst, &made);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], 0);
	printf("made %d\n", made);
	return 0;
}

static int limited(void)
{
	struct rlimit limit = { 10, 10 };
	int n = 0;

	close_range(3, ~0U, 0); /* what the tests' own caller left open */
	setrlimit(RLIMIT_NOFILE, &limit);
	while (tcp(0) >= 0)
		n++;
	printf("%d %s\n", n, errno == EMFILE ? "EMFILE" : strerror(errno));
	return 0;
}

/* A filter of its own, under which everything but ptrace goes. */
static int sandbox(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void counted(int signal)
{
	(void)signal;
	if (write(1, "x", 1) != 1)
		_exit(1);
}

/* A letter for each SIGTERM, and an end some time after the first. */
static int terms(void)
{
	struct sigaction action = { .sa_handler = counted };
	struct timespec rest = { 2, 0 };

	sigaction(SIGTERM, &action, 0);
	if (write(1, "\n", 1) != 1)
		return 1;
	pause();
	while (nanosleep(&rest, &rest))
		;
	return 0;
}

static int listener(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int fd = tcp(0);
	int bound = bind(fd, (void *)&any, sizeof any);
	int listening = listen(fd, 5);

	printf("%d %d %d\n", protocol(fd), bound, listening);
	return 0;
}

int main(int n, char **a)
{
	const char *what = n > 1 ? a[1] : "";
	const char *host = n > 2 ? a[2] : "";
	int port = n > 3 ? atoi(a[3]) : 0;
	long bytes = n > 4 ? atol(a[4]) : 0;

	subflows = n > 5 ? atoi(a[5]) : 0;
	if (!strcmp(what, "transfer"))
		return transfer("self", host, port, bytes);
	if (!strcmp(what, "poll")) /* without blocking in connect() */
		return transfer("poll", host, port, bytes);
	if (!strcmp(what, "children")) {
		int bad = transfer("self", host, port, bytes), status;
		pid_t child;
		fflush(stdout);
		if (!(child = fork()))
			_exit(transfer("child", host, port, bytes));
		waitpid(child, &status, 0);
		execl("/proc/self/exe", "client", "transfer", host, a[3], a[4], a[5], (char *)0);
		return bad;
	}
	if (!strcmp(what, "sandbox")) {
		if (sandbox())
			return 9;
		syscall(SYS_close_range, 3, ~0u, 0);
		return transfer("sandboxed", host, port, bytes);
	}
	if (!strcmp(what, "many"))
		return many(host, port, bytes);
	if (!strcmp(what, "paced"))
		return paced(host, port, bytes);
	if (!strcmp(what, "beside"))
		return beside(host, port, bytes);
	if (!strcmp(what, "burst"))
		return bursts();
	if (!strcmp(what, "limited"))
		return limited();
	if (!strcmp(what, "terms"))
		return terms();
	if (!strcmp(what, "listener"))
		return listener();
	if (!strcmp(what, "ids")) {
		printf("%d %d %d %d\n", getuid(), geteuid(), getgid(), getgroups(0, 0));
		return setuid(0) == 0 && getuid() == 0 && getenv("MAY_BE_ROOT") == 0;
	}
	return 2;
}
