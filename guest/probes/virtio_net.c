/*
 * Probe "virtio-net": exchanges the frames of frames.h with the host through a raw packet socket on a virtio-net
 * interface, every size class, wrong checksums and floods, and counts on its side of the wire.
 */
#include "guest/init/file.h"
#include "guest/probes/frames.h"
#include "guest/probes/probes.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HOST_TIMEOUT_MS    120000
#define IDLE_TIMEOUT_MS    5000       /* without a single frame: what is missing will not come */
#define SOCKET_QUEUE_BYTES (48 << 20) /* a whole flood, so that no frame is lost in the guest itself */
#define TRANSMIT_QUEUE     256        /* descriptors of a queue of QEMU's virtio-net */
#define COUNTERS           "/sys/class/net/%s/statistics/%s"

struct net {
    struct hf_probe *probe;
    char name[IFNAMSIZ];
    int index;
    int fd; /* AF_PACKET, SOCK_RAW, every protocol */
    int64_t seed;
    uint64_t sent, refused; /* in this stage */
    uint64_t sent_before;   /* in the stages before */
    int refusal_errno;      /* of the last one */
    unsigned dropped;       /* by the socket's own queue */
    struct hf_frame_tally tally;
};

static uint8_t frame[HF_FRAME_LARGEST + 64], scratch[HF_FRAME_LARGEST];

static int64_t counter(const struct net *net, const char *what)
{
    char path[96], text[32];
    snprintf(path, sizeof path, COUNTERS, net->name, what);
    return hf_file_read(path, text, sizeof text) < 0 ? -1 : strtoll(text, NULL, 10);
}

/* --- setting up --- */

/* The only interface besides loopback: the VM has exactly one network device. */
static int find_interface(struct net *net)
{
    DIR *directory = opendir("/sys/class/net");
    for (const struct dirent *entry = directory ? readdir(directory) : NULL; entry; entry = readdir(directory))
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "lo") != 0)
            snprintf(net->name, sizeof net->name, "%.15s", entry->d_name);
    if (directory)
        closedir(directory);
    net->index = net->name[0] ? (int)if_nametoindex(net->name) : 0;
    return net->index > 0 ? 0 : hf_probe_cannot_run(net->probe, "the guest has no network interface");
}

static int set_flags(struct net *net, int add, int drop)
{
    struct ifreq request = {0};
    memcpy(request.ifr_name, net->name, sizeof net->name);
    if (ioctl(net->fd, SIOCGIFFLAGS, &request) != 0)
        return -1;
    request.ifr_flags = (short)((request.ifr_flags | add) & ~drop);
    return ioctl(net->fd, SIOCSIFFLAGS, &request);
}

/* Silences the kernel (no IPv6, no ARP), so that every frame on the wire is one that somebody meant to send. */
static int configure(struct net *net)
{
    char path[96];
    struct ifreq request = {.ifr_mtu = HF_FRAME_MTU};
    snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/disable_ipv6", net->name);
    hf_file_write(path, "1"); /* absent without IPv6 */
    memcpy(request.ifr_name, net->name, sizeof net->name);
    if (ioctl(net->fd, SIOCSIFMTU, &request) != 0)
        return hf_probe_cannot_run(net->probe, "the MTU cannot be set to %d: %s", HF_FRAME_MTU, strerror(errno));
    if (set_flags(net, IFF_UP | IFF_NOARP, 0) != 0)
        return hf_probe_cannot_run(net->probe, "the interface cannot be brought up: %s", strerror(errno));
    return 0;
}

/* The socket is bound only once the interface is up: bound earlier, its first call would fail with ENETDOWN. */
static int open_socket(struct net *net)
{
    int receive_queue = SOCKET_QUEUE_BYTES, send_queue = 2 << 20, on = 1;
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = net->index};
    struct packet_mreq promiscuous = {.mr_ifindex = net->index, .mr_type = PACKET_MR_PROMISC};
    net->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (net->fd < 0)
        return hf_probe_cannot_run(net->probe, "no packet socket: %s", strerror(errno));
    if (configure(net))
        return -1;
    if (setsockopt(net->fd, SOL_SOCKET, SO_RCVBUFFORCE, &receive_queue, sizeof receive_queue) != 0 ||
        setsockopt(net->fd, SOL_SOCKET, SO_SNDBUFFORCE, &send_queue, sizeof send_queue) != 0 ||
        setsockopt(net->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0 ||
        setsockopt(net->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) != 0 ||
        bind(net->fd, (struct sockaddr *)&address, sizeof address) != 0)
        return hf_probe_cannot_run(net->probe, "the packet socket cannot be set up: %s", strerror(errno));
    return 0;
}

/* --- moving frames --- */

static bool transient(int number)
{
    return number == EAGAIN || number == ENOBUFS || number == EINTR;
}

/* Sends the frame at the cursor. 1 sent, 0 not now, -1 refused for good (counted, passed over). */
static int send_one(struct net *net, struct hf_frame_cursor *cursor)
{
    unsigned length = hf_frame_build(cursor, frame);
    ssize_t sent = send(net->fd, frame, length, MSG_DONTWAIT);
    if (sent < 0 && transient(errno))
        return 0;
    hf_frame_cursor_advance(cursor);
    if (sent != (ssize_t)length) {
        net->refused++;
        net->refusal_errno = sent < 0 ? errno : 0;
        return -1;
    }
    net->sent++;
    return 1;
}

static int receive_one(struct net *net)
{
    ssize_t length = recv(net->fd, frame, sizeof frame, MSG_DONTWAIT | MSG_TRUNC);
    if (length < 0)
        return 0;
    hf_frame_tally_take(&net->tally, frame, (size_t)length < sizeof frame ? (size_t)length : sizeof frame);
    return 1;
}

/* Sends everything of `send` and receives `wanted` frames, whichever is possible next, until both are done or nothing
 * has moved for IDLE_TIMEOUT_MS. Either may be empty. */
static void exchange(struct net *net, struct hf_frame_cursor *outgoing, uint64_t wanted)
{
    for (;;) {
        bool sending = outgoing && !hf_frame_cursor_at_end(outgoing);
        bool receiving = net->tally.received < wanted;
        if (!sending && !receiving)
            return;
        bool moved = false;
        for (int i = 0; i < 64 && receiving && receive_one(net); i++)
            moved = true;
        if (sending && send_one(net, outgoing) != 0)
            moved = true;
        if (moved)
            continue;
        struct pollfd polled = {.fd = net->fd, .events = (short)(POLLIN | (sending ? POLLOUT : 0))};
        if (poll(&polled, 1, IDLE_TIMEOUT_MS) <= 0)
            return;
        if (sending && !(polled.revents & POLLIN))
            usleep(500); /* ENOBUFS comes from the device's queue, which poll() does not watch */
    }
}

static void begin_tally(struct net *net, enum hf_frame_direction direction)
{
    hf_frame_tally_init(&net->tally, (uint64_t)net->seed, direction, scratch);
}

/* --- stages --- */

static int begin_stage(struct net *net, int stage)
{
    int64_t agreed;
    hf_emit_int(hf_probe_event_begin(net->probe, HF_NET_EVENT_STAGE_READY), "stage", stage);
    if (hf_probe_event_send(net->probe) || hf_probe_wait_continue(net->probe, HOST_TIMEOUT_MS))
        return hf_probe_cannot_run(net->probe, "the host did not begin stage %d", stage);
    return hf_probe_arg_int(net->probe, "stage", stage, stage, &agreed);
}

/* Waits until a counter of the interface has reached `expected`, as long as a slow host may need; returns it. */
static uint64_t wait_counter(const struct net *net, const char *what, uint64_t expected)
{
    uint64_t counted = (uint64_t)counter(net, what);
    for (int i = 0; i < 500 && counted < expected; i++) {
        usleep(20000);
        counted = (uint64_t)counter(net, what);
    }
    return counted;
}

/* A frame may still wait for its turn after send(), and the driver counts it when it reclaims the buffer, for which it
 * may wait until it sends again: in the end its counter lags by at most its queue. */
static void check_sent(struct net *net, const char *name, uint64_t expected)
{
    uint64_t total = net->sent_before + net->sent, least = total > TRANSMIT_QUEUE ? total - TRANSMIT_QUEUE : 0;
    uint64_t counted = wait_counter(net, "tx_packets", least);
    hf_probe_check(net->probe, name, net->sent == expected && net->refused == 0 && counted <= total && counted >= least,
                   "%llu sent, %llu refused (errno %d), the interface counted %llu of %llu so far",
                   (unsigned long long)net->sent, (unsigned long long)net->refused, net->refusal_errno,
                   (unsigned long long)counted, (unsigned long long)total);
    net->sent_before = total;
    net->sent = net->refused = 0;
}

static void check_received(struct net *net, const char *name)
{
    struct tpacket_stats statistics = {0};
    socklen_t size = sizeof statistics;
    getsockopt(net->fd, SOL_PACKET, PACKET_STATISTICS, &statistics, &size);
    net->dropped += statistics.tp_drops;
    uint64_t expected = hf_frame_total(&net->tally.missing);
    hf_probe_check(
        net->probe, name, net->tally.received == expected && net->tally.exact == expected && statistics.tp_drops == 0,
        "%llu of %llu received, %llu exact (first missing: %s), %llu reordered, %llu wrong (first: %zu bytes), "
        "%u dropped by the socket",
        (unsigned long long)net->tally.received, (unsigned long long)expected, (unsigned long long)net->tally.exact,
        hf_frame_tally_missing_class(&net->tally), (unsigned long long)net->tally.reordered,
        (unsigned long long)net->tally.wrong, net->tally.first_wrong_length, statistics.tp_drops);
}

/* The kernel must refuse what is no Ethernet frame, or larger than the device takes, before it reaches the device. */
static void check_refusals(struct net *net)
{
    ssize_t short_sent = send(net->fd, frame, HF_FRAME_HEADER_SIZE - 1, 0);
    int short_errno = errno;
    ssize_t long_sent = send(net->fd, frame, HF_FRAME_LARGEST + 16, 0);
    int long_errno = errno;
    hf_probe_check(net->probe, "impossible-frames-refused",
                   short_sent < 0 && short_errno == EINVAL && long_sent < 0 && long_errno == EMSGSIZE,
                   "13 bytes: errno %d, %d bytes: errno %d", short_sent < 0 ? short_errno : 0, HF_FRAME_LARGEST + 16,
                   long_sent < 0 ? long_errno : 0);
}

static int stage_outgoing(struct net *net)
{
    struct hf_frame_cursor outgoing;
    if (begin_stage(net, 1))
        return -1;
    hf_frame_cursor_init(&outgoing, (uint64_t)net->seed, HF_FRAMES_FROM_GUEST);
    begin_tally(net, HF_FRAMES_FROM_HOST); /* nothing is expected yet */
    exchange(net, &outgoing, 0);
    check_refusals(net);
    check_sent(net, "every-class-sent", hf_frame_total(&outgoing));
    return 0;
}

/* Column `name` of the line pair "IpExt:" in /proc/net/netstat. */
static int64_t ip_statistic(const char *name)
{
    char text[8192];
    if (hf_file_read("/proc/net/netstat", text, sizeof text) < 0)
        return -1;
    char *titles = strstr(text, "\nIpExt:"), *values = titles ? strstr(titles + 1, "\nIpExt:") : NULL;
    if (!values)
        return -1;
    *values++ = '\0';
    char *title_state, *value_state;
    char *title = strtok_r(titles + 1, " \n", &title_state), *value = strtok_r(values, " \n", &value_state);
    while (title && value && strcmp(title, name) != 0) {
        title = strtok_r(NULL, " \n", &title_state);
        value = strtok_r(NULL, " \n", &value_state);
    }
    return title && value ? strtoll(value, NULL, 10) : -1;
}

static unsigned bad_ip_frames(void)
{
    unsigned count = 0;
    for (size_t i = 0; i < HF_FRAME_CLASS_COUNT; i++)
        count += hf_frame_classes[i].kind == HF_FRAME_BAD_IP_CHECKSUM ? hf_frame_classes[i].count : 0;
    return count;
}

static int stage_incoming(struct net *net)
{
    uint64_t length_errors = (uint64_t)counter(net, "rx_length_errors");
    int64_t checksum_errors = ip_statistic("InCsumErrors");
    begin_tally(net, HF_FRAMES_FROM_HOST);
    if (begin_stage(net, 2))
        return -1;
    exchange(net, NULL, hf_frame_total(&net->tally.missing));
    uint64_t too_short =
        wait_counter(net, "rx_length_errors", length_errors + HF_FRAME_TOO_SHORT_COUNT) - length_errors;
    check_received(net, "every-class-received");
    hf_probe_check(net->probe, "frames-without-header-dropped", too_short == HF_FRAME_TOO_SHORT_COUNT,
                   "%d of them sent, the driver counted %llu length errors", HF_FRAME_TOO_SHORT_COUNT,
                   (unsigned long long)too_short);
    int64_t bad = ip_statistic("InCsumErrors") - checksum_errors;
    hf_probe_check(net->probe, "bad-ip-checksums-rejected", bad == (int64_t)bad_ip_frames(),
                   "%u sent, the stack rejected %lld", bad_ip_frames(), (long long)bad);
    return 0;
}

static int stage_duplex(struct net *net)
{
    struct hf_frame_cursor outgoing;
    begin_tally(net, HF_FLOOD_FROM_HOST);
    hf_frame_cursor_init(&outgoing, (uint64_t)net->seed, HF_FLOOD_FROM_GUEST);
    if (begin_stage(net, 3))
        return -1;
    exchange(net, &outgoing, hf_frame_total(&net->tally.missing));
    check_sent(net, "duplex-flood-sent", hf_frame_total(&outgoing));
    check_received(net, "duplex-flood-received");
    return 0;
}

static int virtio_net(struct hf_probe *probe)
{
    struct net net = {.probe = probe, .fd = -1};
    char why[256];
    if (hf_probe_arg_int(probe, "seed", 0, INT64_MAX, &net.seed))
        return -1;
    if (hf_guest_load_module("virtio_net", why, sizeof why) != 0)
        return hf_probe_cannot_run(probe, "%s", why);
    if (find_interface(&net) || open_socket(&net) || stage_outgoing(&net) || stage_incoming(&net) ||
        stage_duplex(&net) || begin_stage(&net, 4))
        return -1;
    hf_emit_uint(hf_probe_result(probe), "rx_packets", (uint64_t)counter(&net, "rx_packets"));
    hf_emit_uint(hf_probe_result(probe), "tx_packets", (uint64_t)counter(&net, "tx_packets"));
    hf_emit_uint(hf_probe_result(probe), "socket_drops", net.dropped);
    set_flags(&net, 0, IFF_UP);
    close(net.fd);
    return 0;
}

HF_PROBE(HF_NET_PROBE, virtio_net);
