#include "redteam/redteam.h"

#include "base/cleanup.h"
#include "base/strings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int listen_loopback(unsigned *ret_port)
{
    hc_autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 16) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return -errno;
    *ret_port = ntohs(address.sin_port);
    return hc_take_fd(&fd);
}

static int listen_abstract(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    hc_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 16) != 0)
        return -errno;
    return hc_take_fd(&fd);
}

int hc_bait_lay(struct hc_bait *bait)
{
    uint8_t random[12];
    memset(bait, 0, sizeof *bait);
    bait->listener = bait->abstract_listener = -1;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return -EIO;
    (void)strcpy(bait->secret, "decoy-");
    for (size_t i = 0; i < sizeof random; i++)
        (void)snprintf(bait->secret + 6 + 2 * i, 3, "%02x", random[i]);
    (void)snprintf(bait->abstract, sizeof bait->abstract, "hotcell-%.24s", bait->secret + 6);
    (void)strcpy(bait->folder, "/tmp/hotcell-redteam-XXXXXX");
    if (mkdtemp(bait->folder) == NULL)
        return -errno;
    (void)snprintf(bait->decoy, sizeof bait->decoy, "%s/secret", bait->folder);
    /* Readable by everybody on the host: what keeps a cell from it must not be its mode. */
    hc_autoclose int fd = open(bait->decoy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (chmod(bait->folder, 0755) != 0 || fd < 0 || hc_write_all(fd, bait->secret, strlen(bait->secret)) < 0)
        return errno != 0 ? -errno : -EIO;
    bait->listener = listen_loopback(&bait->port);
    bait->abstract_listener = listen_abstract(bait->abstract);
    if (setenv("HOTCELL_REDTEAM_TOKEN", bait->secret, 1) != 0)
        return -errno;
    return bait->listener < 0 ? bait->listener : bait->abstract_listener < 0 ? bait->abstract_listener : 0;
}

unsigned hc_bait_bites(const struct hc_bait *bait)
{
    unsigned bites = 0;
    const int listeners[] = {bait->listener, bait->abstract_listener};
    for (int i = 0; i < 2; i++)
        for (int fd; (fd = accept4(listeners[i], NULL, NULL, SOCK_CLOEXEC)) >= 0; bites++)
            (void)close(fd);
    return bites;
}

void hc_bait_remove(struct hc_bait *bait)
{
    hc_close_fd(&bait->listener);
    hc_close_fd(&bait->abstract_listener);
    (void)unlink(bait->decoy);
    if (bait->folder[0] != '\0')
        (void)rmdir(bait->folder);
    (void)unsetenv("HOTCELL_REDTEAM_TOKEN");
}

char *hc_bait_fill(const struct hc_bait *bait, const char *text)
{
    char port[16];
    (void)snprintf(port, sizeof port, "%u", bait->port);
    const struct {
        const char *word, *value;
    } words[] = {{"{DECOY}", bait->decoy},
                 {"{SECRET}", bait->secret},
                 {"{PORT}", port},
                 {"{ABSTRACT}", bait->abstract}};
    char *out = calloc(1, strlen(text) * 2 + 4096);
    char *at = out;
    while (out != NULL && *text != '\0') {
        size_t i = 0;
        while (i < 4 && strncmp(text, words[i].word, strlen(words[i].word)) != 0)
            i++;
        if (i == 4 || (size_t)(at - out) > strlen(out) + 4000) {
            *at++ = *text++;
            continue;
        }
        at = stpcpy(at, words[i].value);
        text += strlen(words[i].word);
    }
    return out;
}
