/* The watchdog's canaries: every way of touching them is seen, restoring hides nothing, and nobody is lost at shutdown.
 */
#include "executor/watchdog/host_canary.h"
#include "executor/watchdog/message.h"
#include "executor/watchdog/network_canary.h"
#include "tests/run_suite.h"

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char directory[64], canary_path[128];
static int dirfd_of_test = -1;
static struct host_canaries canaries;

static void setup(void)
{
    snprintf(directory, sizeof directory, "/tmp/hf-canary-unit-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(canary_path, sizeof canary_path, "%s/" WATCHDOG_CANARY_NAME, directory);
    dirfd_of_test = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(host_canaries_init(&canaries, "run-1", 7, NULL), 0);
    ck_assert_int_eq(host_canary_plant(&canaries, 0, dirfd_of_test, "canary", NULL), 0);
}

static void teardown(void)
{
    char command[160];
    host_canaries_clear(&canaries);
    close(dirfd_of_test);
    snprintf(command, sizeof command, "rm -rf %s %s.moved", directory, directory);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(the_bytes_follow_from_run_id_and_seed)
{
    uint8_t a[HOST_CANARY_BYTES], b[HOST_CANARY_BYTES];
    host_canary_bytes("run-1", 7, a);
    host_canary_bytes("run-1", 7, b);
    ck_assert_mem_eq(a, b, sizeof a);
    host_canary_bytes("run-1", 8, b);
    ck_assert_mem_ne(a, b, sizeof a);
    host_canary_bytes("run-2", 7, b);
    ck_assert_mem_ne(a, b, sizeof a);
}
END_TEST

START_TEST(reading_the_canary_is_no_violation)
{
    char bytes[HOST_CANARY_BYTES];
    int fd = open(canary_path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(read(fd, bytes, sizeof bytes), sizeof bytes);
    close(fd);
    for (int i = 0; i < 3; i++)
        host_canaries_check(&canaries);
    ck_assert(canaries.intact);
    ck_assert_str_eq(canaries.observed_sha256, canaries.sha256);
}
END_TEST

static void open_for_writing(void)
{
    close(open(canary_path, O_WRONLY | O_CLOEXEC));
}

static void write_same_byte(void)
{
    int fd = open(canary_path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, canaries.bytes, 1, 0), 1);
    close(fd);
}

static void append(void)
{
    int fd = open(canary_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    close(fd);
}

static void cut(void)
{
    ck_assert_int_eq(truncate(canary_path, 100), 0);
}

static void write_through_a_mapping_and_restore(void)
{
    struct stat status;
    int fd = open(canary_path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(fstat(fd, &status), 0);
    uint8_t *bytes = mmap(NULL, HOST_CANARY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    bytes[5] ^= 1;
    bytes[5] ^= 1;
    munmap(bytes, HOST_CANARY_BYTES);
    const struct timespec times[2] = {status.st_atim, status.st_mtim};
    futimens(fd, times);
    close(fd);
}

static void change_mode_and_back(void)
{
    chmod(canary_path, 0644);
    chmod(canary_path, 0600);
}

static void set_times(void)
{
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    utimensat(AT_FDCWD, canary_path, times, 0);
}

static void rename_and_back(void)
{
    ck_assert_int_eq(renameat(dirfd_of_test, WATCHDOG_CANARY_NAME, dirfd_of_test, "x"), 0);
    ck_assert_int_eq(renameat(dirfd_of_test, "x", dirfd_of_test, WATCHDOG_CANARY_NAME), 0);
}

static void link_and_unlink(void)
{
    ck_assert_int_eq(linkat(dirfd_of_test, WATCHDOG_CANARY_NAME, dirfd_of_test, "alias", 0), 0);
    ck_assert_int_eq(unlinkat(dirfd_of_test, "alias", 0), 0);
}

static void delete (void)
{
    ck_assert_int_eq(unlink(canary_path), 0);
}

static void replace_with_equal_file(void)
{
    char other[160];
    snprintf(other, sizeof other, "%s/other", directory);
    int fd = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, canaries.bytes, HOST_CANARY_BYTES), HOST_CANARY_BYTES);
    close(fd);
    ck_assert_int_eq(rename(other, canary_path), 0);
}

static void replace_with_link(void)
{
    delete ();
    ck_assert_int_eq(symlink("/etc/hostname", canary_path), 0);
}

static void replace_with_fifo(void)
{
    delete ();
    ck_assert_int_eq(mkfifo(canary_path, 0600), 0);
}

static void move_directory_and_back(void)
{
    char moved[80];
    snprintf(moved, sizeof moved, "%s.moved", directory);
    ck_assert_int_eq(rename(directory, moved), 0);
    ck_assert_int_eq(rename(moved, directory), 0);
}

static void (*const TOUCHES[])(void) = {
    open_for_writing,
    write_same_byte,
    append,
    cut,
    write_through_a_mapping_and_restore,
    change_mode_and_back,
    set_times,
    rename_and_back,
    link_and_unlink,
    delete,
    replace_with_equal_file,
    replace_with_link,
    replace_with_fifo,
    move_directory_and_back,
};

START_TEST(every_touch_is_seen_and_stays_seen)
{
    TOUCHES[_i]();
    host_canaries_check(&canaries);
    ck_assert_msg(!canaries.intact, "touch %d was not seen", _i);
    ck_assert_str_ne(canaries.evidence, "");
    char first[sizeof canaries.evidence];
    memcpy(first, canaries.evidence, sizeof first);
    host_canaries_check(&canaries);
    ck_assert(!canaries.intact);
    ck_assert_str_eq(canaries.evidence, first);
}
END_TEST

START_TEST(content_is_judged_without_any_notification)
{
    /* As if inotify had seen nothing: its queue is thrown away before the check. */
    append();
    char events[4096];
    ck_assert_int_gt(read(canaries.inotify_fd, events, sizeof events), 0);
    host_canaries_check(&canaries);
    ck_assert(!canaries.intact);
}
END_TEST

START_TEST(a_canary_beside_a_repetition_is_watched_until_it_is_retired)
{
    ck_assert_int_eq(mkdirat(dirfd_of_test, "rep-1", 0700), 0);
    int beside = openat(dirfd_of_test, "rep-1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(host_canary_plant(&canaries, 1, beside, "rep-1", NULL), 0);
    ck_assert_int_eq(host_canary_plant(&canaries, 1, beside, "rep-1", NULL), -1);
    host_canaries_check(&canaries);
    ck_assert(canaries.intact);
    host_canary_retire(&canaries, 1);
    ck_assert(canaries.intact);
    ck_assert_int_eq(unlinkat(beside, WATCHDOG_CANARY_NAME, 0), 0);
    host_canaries_check(&canaries);
    ck_assert(canaries.intact);
    close(beside);
}
END_TEST

START_TEST(a_touch_just_before_retirement_is_seen)
{
    ck_assert_int_eq(mkdirat(dirfd_of_test, "rep-1", 0700), 0);
    int beside = openat(dirfd_of_test, "rep-1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(host_canary_plant(&canaries, 1, beside, "rep-1", NULL), 0);
    int fd = openat(beside, WATCHDOG_CANARY_NAME, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, canaries.bytes, 1, 0), 1);
    close(fd);
    host_canary_retire(&canaries, 1);
    ck_assert(!canaries.intact);
    ck_assert_ptr_nonnull(strstr(canaries.evidence, "rep-1"));
    close(beside);
}
END_TEST

/* Network canary. */

static void count_seen(void *context, const char peer[NETWORK_CANARY_PEER_SIZE])
{
    (*(unsigned *)context)++;
    ck_assert(strncmp(peer, "[127.0.0.1]:", 12) == 0 || strncmp(peer, "[::1]:", 6) == 0);
}

static int connect_once(int family, int port)
{
    struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_loopback};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int status = family == AF_INET ? connect(fd, (struct sockaddr *)&v4, sizeof v4)
                                   : connect(fd, (struct sockaddr *)&v6, sizeof v6);
    close(fd);
    return status;
}

START_TEST(connections_closed_at_once_are_counted_on_every_address)
{
    struct network_canary canary;
    unsigned seen = 0, made = 0;
    network_canary_init(&canary);
    ck_assert_int_eq(network_canary_open(&canary, NULL), 0);
    for (int i = 0; i < 50; i++)
        made += connect_once(AF_INET, canary.port) == 0;
    ck_assert_uint_eq(made, 50);
    if (canary.fds[1] >= 0)
        made += connect_once(AF_INET6, canary.port) == 0;
    network_canary_drain(&canary, 1000, count_seen, &seen);
    ck_assert_uint_eq(canary.connections, made);
    ck_assert_uint_eq(seen, made);
    network_canary_close(&canary, count_seen, &seen);
    ck_assert_str_eq(canary.error, "");
}
END_TEST

START_TEST(connections_in_the_queue_are_counted_at_shutdown)
{
    struct network_canary canary;
    unsigned seen = 0;
    network_canary_init(&canary);
    ck_assert_int_eq(network_canary_open(&canary, NULL), 0);
    ck_assert_int_eq(connect_once(AF_INET, canary.port), 0);
    network_canary_close(&canary, count_seen, &seen);
    ck_assert_uint_eq(canary.connections, 1);
    ck_assert_uint_eq(seen, 1);
    ck_assert_int_ne(connect_once(AF_INET, canary.port), 0);
}
END_TEST

struct hammer {
    int port;
    atomic_bool stop;
    atomic_uint connected;
};

static void *hammer_on(void *context)
{
    struct hammer *hammer = context;
    while (!atomic_load(&hammer->stop))
        atomic_fetch_add(&hammer->connected, connect_once(AF_INET, hammer->port) == 0);
    return NULL;
}

START_TEST(nobody_who_connects_while_the_listener_closes_is_lost)
{
    for (int round = 0; round < 5; round++) {
        struct network_canary canary;
        struct hammer hammer = {0};
        unsigned seen = 0;
        pthread_t thread;
        network_canary_init(&canary);
        ck_assert_int_eq(network_canary_open(&canary, NULL), 0);
        hammer.port = canary.port;
        ck_assert_int_eq(pthread_create(&thread, NULL, hammer_on, &hammer), 0);
        for (int i = 0; i < 20 || atomic_load(&hammer.connected) == 0; i++) { /* on a busy host it may start late */
            nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
            network_canary_drain(&canary, 100000, count_seen, &seen);
        }
        network_canary_close(&canary, count_seen, &seen);
        atomic_store(&hammer.stop, true);
        pthread_join(thread, NULL);
        ck_assert_uint_eq(canary.connections, atomic_load(&hammer.connected));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("watchdog canaries");
    TCase *host = tcase_create("host");
    tcase_add_checked_fixture(host, setup, teardown);
    tcase_add_test(host, the_bytes_follow_from_run_id_and_seed);
    tcase_add_test(host, reading_the_canary_is_no_violation);
    tcase_add_loop_test(host, every_touch_is_seen_and_stays_seen, 0, sizeof TOUCHES / sizeof TOUCHES[0]);
    tcase_add_test(host, content_is_judged_without_any_notification);
    tcase_add_test(host, a_canary_beside_a_repetition_is_watched_until_it_is_retired);
    tcase_add_test(host, a_touch_just_before_retirement_is_seen);
    suite_add_tcase(suite, host);
    TCase *network = tcase_create("network");
    tcase_add_test(network, connections_closed_at_once_are_counted_on_every_address);
    tcase_add_test(network, connections_in_the_queue_are_counted_at_shutdown);
    tcase_add_test(network, nobody_who_connects_while_the_listener_closes_is_lost);
    suite_add_tcase(suite, network);
    return run_suite(suite);
}
