/* A probe inside the real belljar process: it tries forbidden system calls, and reports the results. LD_PRELOAD loads it. It
 * replaces `epoll_wait` and `read`, and runs before the first call of one of them: when the server first waits for events, or
 * when the compiler process reads standard input. It runs in the thread of that call.
 *
 * Each line of $WALL_PROBE is one attempt, a verb and an argument. The probe writes the result of each attempt to standard
 * error: "probe: LINE = ERRNO". In the helper process `outside`, the line begins with "outside:". */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each function below makes one attempt. It returns 0 for success, and otherwise the errno. */

static int opened(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd < 0) return errno;
    close(fd);
    return 0;
}

/* `act` is connect or bind, with a port of loopback. */
static int tcp(const char *port, int (*act)(int, const struct sockaddr *, socklen_t)) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    int error = act(fd, (struct sockaddr *)&to, sizeof to) == 0 ? 0 : errno;
    close(fd);
    return error;
}

/* Connects to an abstract Unix socket. */
static int speak(const char *name) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    strncpy(to.sun_path + 1, name, sizeof to.sun_path - 2);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    int error = connect(fd, (struct sockaddr *)&to, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)) == 0 ? 0 : errno;
    close(fd);
    return error;
}

/* Connects to a Unix socket that is a file. The sockets of desktops and of container engines are such files. */
static int knock(const char *path) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    strncpy(to.sun_path, path, sizeof to.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    int error = connect(fd, (struct sockaddr *)&to, sizeof to) == 0 ? 0 : errno;
    close(fd);
    return error;
}

/* Connects with Multipath TCP (protocol 262). The Landlock rules for TCP do not cover this protocol. */
static int round_about(const char *port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 262);
    if (fd < 0) return errno;
    int error = connect(fd, (struct sockaddr *)&to, sizeof to) == 0 ? 0 : errno;
    close(fd);
    return error;
}

/* Connects with TCP Fast Open: `sendto` opens the connection and sends the first byte, without `connect`. */
static int hasty(const char *port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    int error = sendto(fd, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&to, sizeof to) == 1 ? 0 : errno;
    close(fd);
    return error;
}

/* Listens without `bind`. The kernel then chooses a port. */
static int listening(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    int error = listen(fd, 1) == 0 ? 0 : errno;
    close(fd);
    return error;
}

/* Creates shared memory that every process of the same user may attach. */
static int shared(void) {
    int id = shmget(IPC_PRIVATE, 4096, 0600);
    if (id < 0) return errno;
    shmctl(id, IPC_RMID, NULL);
    return 0;
}

/* Reads memory of a process by its id. The process is this one itself, so the kernel checks no other right than the system call. */
static int peek(void) {
    int here = 1, there = 0;
    struct iovec to = {&there, sizeof there}, from = {&here, sizeof here};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof here ? 0 : errno;
}

static int started(char *program) {
    pid_t child;
    char *arguments[] = {program, NULL}, *nothing[] = {NULL};
    int error = posix_spawn(&child, program, NULL, NULL, arguments, nothing);
    if (error == 0) waitpid(child, NULL, 0);
    return error;
}

/* 1 in the helper process `outside`. Set from the command line before the process raises its wall. */
static int is_outside = 0;

static int tried(char *verb, char *what) {
    if (!strcmp(verb, "open")) return opened(what, O_RDONLY);
    if (!strcmp(verb, "write")) return opened(what, O_WRONLY | O_CREAT);
    if (!strcmp(verb, "connect")) return tcp(what, connect);
    if (!strcmp(verb, "bind")) return tcp(what, bind);
    if (!strcmp(verb, "speak")) return speak(what);
    if (!strcmp(verb, "start")) return started(what);
    if (!strcmp(verb, "chmod")) return chmod(what, 0640) == 0 ? 0 : errno;
    if (!strcmp(verb, "chown")) return chown(what, getuid(), getgid()) == 0 ? 0 : errno;
    if (!strcmp(verb, "lchown")) return lchown(what, getuid(), getgid()) == 0 ? 0 : errno;
    if (!strcmp(verb, "utime")) return utimensat(AT_FDCWD, what, NULL, 0) == 0 ? 0 : errno;
    if (!strcmp(verb, "xattr")) return setxattr(what, "user.belljar", "x", 1, 0) == 0 ? 0 : errno;
    if (!strcmp(verb, "unxattr")) return removexattr(what, is_outside ? "user.outside" : "user.probe") == 0 ? 0 : errno;
    if (!strcmp(verb, "knock")) return knock(what);
    if (!strcmp(verb, "round")) return round_about(what);
    if (!strcmp(verb, "hasty")) return hasty(what);
    if (!strcmp(verb, "listen")) return listening();
    if (!strcmp(verb, "share")) return shared();
    if (!strcmp(verb, "peek")) return peek();
    if (!strcmp(verb, "signal")) return kill(atoi(what), 0) == 0 ? 0 : errno;
    return -1;
}

__attribute__((constructor)) static void look(void) {
    char line[256] = {0};
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t size = syscall(SYS_read, fd, line, sizeof line - 1);
    close(fd);
    const char *verb = line + strlen(line) + 1;
    is_outside = size > 0 && verb < line + size && !strcmp(verb, "outside");
}

static void attempt(void) {
    const char *wanted = getenv("WALL_PROBE");
    char *lines = wanted ? strdup(wanted) : NULL, *rest = lines, *line;
    while (rest && (line = strsep(&rest, "\n"))) {
        char *what = strchr(line, ' ');
        if (!what) continue;
        *what++ = 0;
        int error = tried(line, what);
        dprintf(2, "%s: %s %s = %d\n", is_outside ? "outside" : "probe", line, what, error);
    }
    free(lines);
}

/* Makes all attempts once. Other threads wait here meanwhile. Otherwise the process could answer its client and end too early. */
static void probe(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, attempt);
}

ssize_t read(int fd, void *buffer, size_t size) {
    if (fd == 0) probe();
    return syscall(SYS_read, fd, buffer, size);
}

int epoll_wait(int fd, struct epoll_event *events, int most, int patience) {
    probe();
    return syscall(SYS_epoll_pwait, fd, events, most, patience, NULL, (size_t)8);
}
