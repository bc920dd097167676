/* Listening sockets of holdfastd: a loopback TCP port or a unix socket. */
#ifndef HF_SERVER_HTTP_LISTEN_H
#define HF_SERVER_HTTP_LISTEN_H

#include "common/error.h"

/* `address` is 127.0.0.1:PORT, [::1]:PORT or unix:/absolute/path; port 0 takes a free one. Anything beyond loopback is
 * refused: this release has neither TLS nor tokens. Returns the listening descriptor and *port (0 for a unix socket,
 * which is created 0660, replacing a dead one but never a live one). Codes "listen-address", "listen-failed". */
int hf_listen(const char *address, unsigned *port, struct hf_error *err);

#endif
