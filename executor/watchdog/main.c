/*
 * holdfast-watchdog: the independent oracle of one executor session. Started by holdfast-executor only, as a contained
 * child with the control socket as descriptor 3; ends with its executor. It takes no other input.
 */
#include "common/json_shape.h"
#include "common/log.h"
#include "common/options/options.h"
#include "common/program.h"
#include "executor/watchdog/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

enum { CONTROL_FD = 3, EXIT_USAGE = 2 };

struct arguments {
    const char *run_dir;
    const char *run_id;
    int64_t seed;
    int64_t executor_pid;
};

static int usage_error(const struct hf_error *err)
{
    hf_log_error(HF_LOG_ERROR, "usage", err);
    return EXIT_USAGE;
}

static int check_arguments(const struct arguments *arguments, struct hf_error *err)
{
    int type = 0;
    socklen_t length = sizeof type;
    if (!arguments->run_dir || !arguments->run_id || arguments->seed < 0 || arguments->executor_pid < 1)
        return hf_error_set(err, "usage", 0, "", "--run-dir, --run-id, --seed and --executor-pid are all needed");
    if (!hf_text_is(HF_TEXT_RUN_ID, arguments->run_id))
        return hf_error_set(err, "usage", 0, "run-id", "--run-id expects [a-z0-9][a-z0-9-]{0,95}");
    if (getsockopt(CONTROL_FD, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_SEQPACKET)
        return hf_error_set(err, "usage", errno, "",
                            "descriptor 3 has to be the executor's control socket; the watchdog is started by "
                            "holdfast-executor, not by hand");
    fcntl(CONTROL_FD, F_SETFD, FD_CLOEXEC);
    return 0;
}

int main(int argc, char **argv)
{
    struct arguments arguments = {.seed = -1};
    const struct hf_option options[] = {
        {.name = "run-dir",
         .kind = HF_OPTION_STRING,
         .argument = "DIR",
         .help = "the session's own directory",
         .target = &arguments.run_dir},
        {.name = "run-id",
         .kind = HF_OPTION_STRING,
         .argument = "ID",
         .help = "run id, part of the canary's content",
         .target = &arguments.run_id},
        {.name = "seed",
         .kind = HF_OPTION_INT,
         .argument = "N",
         .help = "seed, part of the canary's content",
         .target = &arguments.seed,
         .min = 0,
         .max = INT64_MAX},
        {.name = "executor-pid",
         .kind = HF_OPTION_INT,
         .argument = "PID",
         .help = "process whose descendants' CPU time is sampled",
         .target = &arguments.executor_pid,
         .min = 1,
         .max = 4194304},
    };
    struct hf_option_result parsed;
    struct hf_error err = {0};
    struct watchdog watchdog;
    hf_program_begin();
    hf_log_init("holdfast-watchdog", HF_LOG_INFO);
    if (hf_options_parse(options, sizeof options / sizeof options[0], argc, argv, &parsed, &err) != 0)
        return usage_error(&err);
    if (parsed.help) {
        puts("holdfast-watchdog: canaries and samples of one executor session; started by holdfast-executor\n");
        hf_options_print(options, sizeof options / sizeof options[0], stdout);
        return 0;
    }
    if (check_arguments(&arguments, &err) != 0)
        return usage_error(&err);
    int status = watchdog_init(&watchdog, arguments.run_dir, arguments.run_id, arguments.seed,
                               (pid_t)arguments.executor_pid, CONTROL_FD, &err);
    if (status == 0)
        status = watchdog_serve(&watchdog, &err);
    if (status != 0)
        hf_log_error(HF_LOG_ERROR, "watchdog_ended", &err);
    watchdog_clear(&watchdog);
    return status == 0 ? 0 : 1;
}
