/* Implementation of file.h. */
#include "guest/init/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

ssize_t hf_file_read(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t length = 0;
    ssize_t got;
    do {
        got = read(fd, out + length, size - 1 - length);
        if (got > 0)
            length += (size_t)got;
    } while (length < size - 1 && (got > 0 || (got < 0 && errno == EINTR)));
    close(fd);
    if (got < 0)
        return -1;
    if (length > 0 && out[length - 1] == '\n')
        length--;
    out[length] = '\0';
    return (ssize_t)length;
}

int hf_file_write(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t length = strlen(text);
    ssize_t put = write(fd, text, length);
    int saved = put < 0 ? errno : EIO;
    close(fd);
    errno = saved;
    return put == (ssize_t)length ? 0 : -1;
}
