/* Implementation of control.h. */
#include "guest/init/control.h"

#include "guest/init/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PORTS_DIR "/sys/class/virtio-ports"

static bool find_port(char *path, size_t size)
{
    DIR *ports = opendir(PORTS_DIR);
    if (!ports)
        return false;
    bool found = false;
    for (struct dirent *port; !found && (port = readdir(ports));) {
        char name_path[300], name[64];
        snprintf(name_path, sizeof name_path, PORTS_DIR "/%.200s/name", port->d_name);
        found = hf_file_read(name_path, name, sizeof name) > 0 && strcmp(name, HF_GUEST_CONTROL_PORT) == 0;
        if (found)
            snprintf(path, size, "/dev/%.200s", port->d_name);
    }
    closedir(ports);
    return found;
}

/* What is queued from here on goes to the next host, and begins with an empty line. */
static void forget(struct hf_control *control)
{
    control->connected = control->overlong = false;
    control->in_length = 0;
    control->out_start = 0;
    control->out_length = 1;
    control->out[0] = '\n';
}

int hf_control_open(struct hf_control *control, unsigned timeout_ms, char *why, size_t why_size)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    char path[256] = "";
    control->fd = -1;
    forget(control);
    /* The port's name arrives in a message of the device after its driver was loaded. */
    for (unsigned waited_ms = 0; waited_ms <= timeout_ms; waited_ms += 2) {
        if (find_port(path, sizeof path))
            control->fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (control->fd >= 0)
            return 0;
        nanosleep(&pause, NULL);
    }
    if (path[0])
        snprintf(why, why_size, "cannot open %s: %s", path, strerror(errno));
    else
        snprintf(why, why_size, "no virtio-serial port named " HF_GUEST_CONTROL_PORT " within %u ms", timeout_ms);
    return -1;
}

bool hf_control_has_room(const struct hf_control *control)
{
    return control->out_length + 2 * HF_GUEST_LINE_MAX <= sizeof control->out;
}

static void append(struct hf_control *control, const char *bytes, size_t length)
{
    if (control->out_start + control->out_length + length > sizeof control->out) {
        memmove(control->out, control->out + control->out_start, control->out_length);
        control->out_start = 0;
    }
    memcpy(control->out + control->out_start + control->out_length, bytes, length);
    control->out_length += length;
}

void hf_control_queue(struct hf_control *control, const char *line, size_t length)
{
    append(control, line, length);
    append(control, "\n", 1);
}

short hf_control_poll_events(const struct hf_control *control)
{
    short events = control->in_length < sizeof control->in ? POLLIN : 0;
    return control->out_length > 0 ? (short)(events | POLLOUT) : events;
}

static void send_queued(struct hf_control *control)
{
    while (control->out_length > 0) {
        ssize_t put = write(control->fd, control->out + control->out_start, control->out_length);
        if (put <= 0)
            return;
        control->out_start += (size_t)put;
        control->out_length -= (size_t)put;
    }
    control->out_start = 0;
}

static void receive(struct hf_control *control)
{
    size_t room = sizeof control->in - control->in_length;
    if (room == 0)
        return;
    ssize_t got = read(control->fd, control->in + control->in_length, room);
    if (got > 0)
        control->in_length += (size_t)got;
}

/* The kernel keeps what a lost host had sent; it must not be taken for the beginning of what the next one says. Once,
 * when the host is first missed: the next host's bytes arrive before the message that it is there. */
static void discard_input(struct hf_control *control)
{
    while (read(control->fd, control->in, sizeof control->in) > 0)
        ;
}

void hf_control_move(struct hf_control *control, short revents)
{
    if (revents & POLLHUP) {
        if (control->connected) {
            discard_input(control);
            forget(control);
        }
        return;
    }
    control->connected = true;
    if (revents & POLLIN)
        receive(control);
    send_queued(control);
}

bool hf_control_take_line(struct hf_control *control, char *line, size_t *length)
{
    char *newline = memchr(control->in, '\n', control->in_length);
    if (!newline) {
        if (control->in_length == sizeof control->in) {
            control->overlong = true;
            control->in_length = 0;
        }
        return false;
    }
    size_t consumed = (size_t)(newline - control->in) + 1;
    *length = control->overlong ? HF_GUEST_LINE_MAX : consumed - 1;
    if (!control->overlong)
        memcpy(line, control->in, consumed - 1);
    control->overlong = false;
    control->in_length -= consumed;
    memmove(control->in, newline + 1, control->in_length);
    return true;
}
