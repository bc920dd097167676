/* Implementation of agent.h: the loop, and the table of operations. */
#include "guest/init/agent.h"

#include "guest/init/info.h"
#include "guest/init/modules.h"
#include "guest/init/power.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum { REASON_MAX = 512, MEMBERS_MAX = 3 };
static const int64_t ID_MAX = (int64_t)1 << 53;

/* A request whose members were checked against its operation. */
struct call {
    int64_t id;
    const struct operation *operation;
    const struct hf_request *request;
    size_t line_length;
};

struct operation {
    const char *name;
    void (*handle)(struct hf_agent *agent, const struct call *call);
    struct {
        const char *name;
        enum hf_field_type type;
        int64_t min, max;   /* of an integer */
    } members[MEMBERS_MAX]; /* beyond "id" and "op", all of them required */
    bool takes_args;
    bool during_run; /* only with the id of a running probe */
    enum hf_power_end end;
};

static struct hf_emit begin_answer(struct hf_agent *agent, int64_t id, const char *operation, const char *status)
{
    struct hf_emit emit;
    hf_emit_init(&emit, agent->answer, sizeof agent->answer);
    hf_emit_object_begin(&emit, NULL);
    hf_emit_int(&emit, "id", id);
    hf_emit_string(&emit, "op", operation);
    hf_emit_string(&emit, "status", status);
    return emit;
}

static void refuse(struct hf_agent *agent, int64_t id, const char *operation, const char *code, const char *message)
{
    struct hf_emit emit = begin_answer(agent, id, operation, "error");
    hf_emit_string(&emit, "code", code);
    hf_emit_string(&emit, "message", message);
    hf_emit_end(&emit);
    hf_control_queue(&agent->control, emit.bytes, emit.length);
}

/* Fails closed: an answer that outgrew its line becomes an error, never a cut line. */
static void finish_answer(struct hf_agent *agent, const struct call *call, struct hf_emit *emit)
{
    hf_emit_end(emit);
    if (hf_emit_done(emit))
        hf_control_queue(&agent->control, emit->bytes, emit->length);
    else
        refuse(agent, call->id, call->operation->name, HF_GUEST_ERROR_FAILED, "the answer exceeds one line");
}

static const char *text_member(const struct call *call, const char *name)
{
    return hf_fields_find(&call->request->members, name)->text;
}

static int64_t integer_member(const struct call *call, const char *name)
{
    return hf_fields_find(&call->request->members, name)->integer;
}

static void handle_ping(struct hf_agent *agent, const struct call *call)
{
    struct hf_emit emit = begin_answer(agent, call->id, call->operation->name, "ok");
    hf_info_emit_ping(&emit);
    finish_answer(agent, call, &emit);
}

static void handle_info(struct hf_agent *agent, const struct call *call)
{
    struct hf_emit emit = begin_answer(agent, call->id, call->operation->name, "ok");
    hf_info_emit(&emit);
    finish_answer(agent, call, &emit);
}

static void handle_load(struct hf_agent *agent, const struct call *call)
{
    char why[REASON_MAX];
    if (hf_guest_load_module(text_member(call, "module"), why, sizeof why) != 0) {
        refuse(agent, call->id, call->operation->name, HF_GUEST_ERROR_FAILED, why);
        return;
    }
    struct hf_emit emit = begin_answer(agent, call->id, call->operation->name, "ok");
    finish_answer(agent, call, &emit);
}

/* Lets the answer reach the host: the device takes bytes in its own time, and nothing tells when it has. */
static void say_farewell(struct hf_agent *agent)
{
    for (int waited_ms = 0; waited_ms < HF_GUEST_FAREWELL_MS; waited_ms++) {
        const struct timespec pause = {.tv_nsec = 1000000};
        struct pollfd port = {.fd = agent->control.fd, .events = hf_control_poll_events(&agent->control)};
        if (poll(&port, 1, 0) > 0)
            hf_control_move(&agent->control, port.revents & (short)~POLLIN);
        nanosleep(&pause, NULL);
    }
}

static void handle_end(struct hf_agent *agent, const struct call *call)
{
    char why[REASON_MAX];
    const enum hf_power_end end = call->operation->end;
    const uint8_t value = end == HF_POWER_EXIT ? (uint8_t)integer_member(call, "value") : 0;
    if (hf_power_prepare(end, why, sizeof why) != 0) {
        refuse(agent, call->id, call->operation->name, HF_GUEST_ERROR_FAILED, why);
        return;
    }
    struct hf_emit emit = begin_answer(agent, call->id, call->operation->name, "ok");
    finish_answer(agent, call, &emit);
    say_farewell(agent);
    hf_power_perform(end, value);
    dprintf(STDERR_FILENO, "holdfast-guest: %s had no effect\n", call->operation->name);
}

static void handle_run(struct hf_agent *agent, const struct call *call)
{
    char why[REASON_MAX];
    const struct hf_probe_entry *entry = hf_probe_find(text_member(call, "probe"));
    if (!entry)
        refuse(agent, call->id, call->operation->name, HF_GUEST_ERROR_PROBE_UNKNOWN,
               "no probe of that name is in this initramfs; the operation info lists them");
    else if (hf_runner_start(&agent->runner, entry, call->request, call->id,
                             (uint64_t)integer_member(call, "timeout_ms"), why, sizeof why) != 0)
        refuse(agent, call->id, call->operation->name, HF_GUEST_ERROR_FAILED, why);
}

static void handle_continue(struct hf_agent *agent, const struct call *call)
{
    if (hf_runner_continue(&agent->runner, agent->whole, call->line_length) != 0)
        refuse(agent, call->id, call->operation->name, HF_GUEST_ERROR_FAILED, "the probe does not listen");
}

static void handle_cancel(struct hf_agent *agent, const struct call *call)
{
    (void)call;
    hf_runner_cancel(&agent->runner);
}

static const struct operation operations[] = {
    {.name = HF_GUEST_OP_PING, .handle = handle_ping},
    {.name = HF_GUEST_OP_INFO, .handle = handle_info},
    {.name = HF_GUEST_OP_POWEROFF, .handle = handle_end, .end = HF_POWER_OFF},
    {.name = HF_GUEST_OP_REBOOT, .handle = handle_end, .end = HF_POWER_REBOOT},
    {.name = HF_GUEST_OP_PANIC, .handle = handle_end, .end = HF_POWER_PANIC},
    {.name = HF_GUEST_OP_TRIPLE_FAULT, .handle = handle_end, .end = HF_POWER_TRIPLE_FAULT},
    {.name = HF_GUEST_OP_EXIT,
     .handle = handle_end,
     .end = HF_POWER_EXIT,
     .members = {{"value", HF_FIELD_INT, 0, 255}}},
    {.name = HF_GUEST_OP_LOAD, .handle = handle_load, .members = {{"module", HF_FIELD_STRING, 0, 0}}},
    {.name = HF_GUEST_OP_RUN,
     .handle = handle_run,
     .members = {{"probe", HF_FIELD_STRING, 0, 0}, {"timeout_ms", HF_FIELD_INT, 1, HF_GUEST_RUN_TIMEOUT_MAX_MS}},
     .takes_args = true},
    {.name = HF_GUEST_OP_CONTINUE, .handle = handle_continue, .takes_args = true, .during_run = true},
    {.name = HF_GUEST_OP_CANCEL, .handle = handle_cancel, .during_run = true},
};

static const struct operation *find_operation(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (strcmp(operations[i].name, name) == 0)
            return &operations[i];
    return NULL;
}

/* Exactly the members of the operation's row, each within its bounds. NULL, or what is wrong. */
static const char *check_members(const struct operation *operation, const struct hf_request *request)
{
    size_t expected = 2;
    for (; expected - 2 < MEMBERS_MAX && operation->members[expected - 2].name; expected++) {
        const size_t row = expected - 2;
        const struct hf_field *field = hf_fields_find(&request->members, operation->members[row].name);
        if (!field || field->type != operation->members[row].type)
            return "a member of the operation is missing or of another type; see guest/protocol.h";
        if (field->type == HF_FIELD_INT &&
            (field->integer < operation->members[row].min || field->integer > operation->members[row].max))
            return "an integer is out of its bounds; see guest/protocol.h";
    }
    if (request->members.count != expected || (request->has_args && !operation->takes_args))
        return "a member that the operation does not have; see guest/protocol.h";
    return NULL;
}

static void dispatch(struct hf_agent *agent, const struct hf_request *request, size_t line_length)
{
    const struct hf_field *id = hf_fields_find(&request->members, "id");
    const struct hf_field *name = hf_fields_find(&request->members, "op");
    if (!id || id->type != HF_FIELD_INT || id->integer < 1 || id->integer > ID_MAX || !name ||
        name->type != HF_FIELD_STRING) {
        refuse(agent, 0, "", HF_GUEST_ERROR_REQUEST, "expected an id of 1 to 2^53 and an op");
        return;
    }
    const struct call call = {id->integer, find_operation(name->text), request, line_length};
    const bool running = agent->runner.active;
    const char *problem = call.operation ? check_members(call.operation, request) : NULL;
    if (!call.operation)
        refuse(agent, call.id, name->text, HF_GUEST_ERROR_OPERATION, "no such operation; see guest/protocol.h");
    else if (problem)
        refuse(agent, call.id, name->text, HF_GUEST_ERROR_REQUEST, problem);
    else if (running && !call.operation->during_run)
        refuse(agent, call.id, name->text, HF_GUEST_ERROR_BUSY, "a probe is running; cancel it or wait for its answer");
    else if (call.operation->during_run && (!running || call.id != agent->runner.run_id))
        refuse(agent, call.id, name->text, HF_GUEST_ERROR_REQUEST, "no probe runs under this id");
    else
        call.operation->handle(agent, &call);
}

static void take_requests(struct hf_agent *agent)
{
    size_t length;
    while (hf_control_has_room(&agent->control) && hf_control_take_line(&agent->control, agent->line, &length)) {
        if (length == 0)
            continue;
        struct hf_request request;
        const char *problem = "longer than a line may be";
        if (length < HF_GUEST_LINE_MAX) {
            memcpy(agent->whole, agent->line, length);
            problem = hf_scan_request(agent->line, length, &request);
        }
        if (problem)
            refuse(agent, 0, "", HF_GUEST_ERROR_REQUEST, problem);
        else
            dispatch(agent, &request, length);
    }
}

_Noreturn void hf_agent_serve(struct hf_agent *agent)
{
    const struct timespec absent = {.tv_nsec = HF_CONTROL_ABSENT_POLL_MS * 1000000L};
    for (;;) {
        struct pollfd fds[3] = {
            {.fd = agent->control.fd, .events = hf_control_poll_events(&agent->control)},
            {.fd = agent->child_fd, .events = POLLIN},
            {.fd = hf_runner_poll_fd(&agent->runner, &agent->control), .events = POLLIN},
        };
        if (poll(fds, 3, hf_runner_timeout_ms(&agent->runner)) < 0)
            fds[0].revents = fds[1].revents = 0;
        if (fds[1].revents & POLLIN) {
            struct signalfd_siginfo children;
            (void)!read(agent->child_fd, &children, sizeof children);
        }
        hf_control_move(&agent->control, fds[0].revents);
        hf_runner_advance(&agent->runner, &agent->control);
        take_requests(agent);
        if (!agent->control.connected)
            nanosleep(&absent, NULL);
    }
}
