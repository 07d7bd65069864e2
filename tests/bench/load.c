/* load: an HTTP/1.1 client over epoll that sends prebuilt requests to a server on loopback, each once, in order.
 *
 *   load -p PORT -f FILE [-c CONNECTIONS] [-d SECONDS] [-w WARM_UP_SECONDS] [-r RATE] [-n FIRST] [-m MOST]
 *
 * FILE is a row of records: a little-endian 32-bit length, then the bytes of one whole request. -n names the first record
 * to send (counted from 0), -m how many at most.
 * Without -r the loop is closed: every connection sends its next request when it has its answer.
 * With -r requests fall due at a fixed rate, and each latency counts from the moment the request was due, so that a
 * server that stalls cannot hide the requests it held up.
 *
 * After the last second it waits up to DRAIN_S for answers still owed, so that the caller can compare what was
 * acknowledged with what was stored. Prints one JSON object. Latencies are of requests begun after the warm-up; `rps`
 * counts answers inside the measured seconds; `statuses`, `slowest_ms` and `unanswered` are of the whole run.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define DRAIN_S 15
#define ANSWER_MAX 16384
#define NAP_MAX (SECOND / 20)

typedef struct {
    const char *bytes;
    uint32_t length;
} Request;

typedef struct {
    int fd, waiting, closing, status;
    const char *out;
    size_t left;
    int64_t begun;
    char in[ANSWER_MAX];
    size_t filled, expected; /* expected: length of the whole answer, 0 while its head is incomplete */
} Connection;

static struct sockaddr_in server;
static int poll_fd;
static Request *requests;
static size_t request_count, next_request;
static int64_t started, counted_from, ends;
static uint32_t *latencies; /* microseconds */
static size_t latency_count, in_window;
static size_t statuses[600], errors, unanswered;
static int64_t slowest, last_answer;

static int64_t monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void read_requests(const char *path) {
    struct stat about;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &about)) die(path);
    char *start = mmap(NULL, about.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (start == MAP_FAILED) die("mmap");
    size_t room = 1 << 16;
    requests = malloc(room * sizeof *requests);
    for (char *at = start, *end = start + about.st_size; at + 4 <= end;) {
        if (request_count == room) requests = realloc(requests, (room *= 2) * sizeof *requests);
        Request *request = &requests[request_count++];
        memcpy(&request->length, at, 4);
        request->bytes = at + 4;
        at += 4 + request->length;
    }
    latencies = malloc((request_count + 1) * sizeof *latencies);
}

static void watch(Connection *c, int operation, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = c};
    epoll_ctl(poll_fd, operation, c->fd, &event);
}

static void dial(Connection *c) {
    int on = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0) die("socket");
    if (connect(c->fd, (struct sockaddr *)&server, sizeof server)) die("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->filled = c->expected = 0;
    watch(c, EPOLL_CTL_ADD, EPOLLIN);
}

static void redial(Connection *c) {
    close(c->fd);
    dial(c);
}

static void push(Connection *c) {
    while (c->left) {
        ssize_t sent = send(c->fd, c->out, c->left, MSG_NOSIGNAL);
        if (sent < 0) { /* any other failure shows again, and is counted, when the answer is read */
            if (errno == EAGAIN) watch(c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
            return;
        }
        c->out += sent;
        c->left -= sent;
    }
}

/* Begins the next request; 0 when the file is used up. */
static int begin(Connection *c, int64_t due) {
    if (next_request >= request_count) return 0;
    Request *request = &requests[next_request++];
    c->out = request->bytes;
    c->left = request->length;
    c->begun = due;
    c->waiting = 1;
    c->filled = c->expected = 0;
    push(c);
    return 1;
}

/* Reads status, length and keep-alive from a complete head. Chunked answers end with their last chunk. */
static void read_head(Connection *c) {
    char *end = memmem(c->in, c->filled, "\r\n\r\n", 4);
    if (!end || c->filled < 12) return;
    size_t length = 0;
    int chunked = 0;
    c->status = atoi(c->in + 9);
    c->closing = 0;
    for (char *line = c->in; line < end; line = (char *)memmem(line, end + 2 - line, "\r\n", 2) + 2) {
        if (!strncasecmp(line, "content-length:", 15)) length = strtoul(line + 15, NULL, 10);
        if (!strncasecmp(line, "transfer-encoding: chunked", 26)) chunked = 1;
        if (!strncasecmp(line, "connection: close", 17)) c->closing = 1;
    }
    if (chunked) {
        if (!memcmp(c->in + c->filled - 5, "0\r\n\r\n", 5)) c->expected = c->filled;
    } else {
        c->expected = end + 4 - c->in + (c->status == 204 ? 0 : length);
    }
}

static void count_answer(Connection *c, int64_t now) {
    int64_t took = now > c->begun ? now - c->begun : 0;
    if (took > slowest) slowest = took;
    if (c->status >= 0 && c->status < 600) statuses[c->status]++;
    if (c->begun >= counted_from) latencies[latency_count++] = took / 1000;
    if (now >= counted_from && now <= ends) in_window++;
    last_answer = now;
}

/* Takes what arrived; 1 when the connection is free for another request. */
static int take(Connection *c) {
    ssize_t got = recv(c->fd, c->in + c->filled, ANSWER_MAX - c->filled, 0);
    if (got < 0 && errno == EAGAIN) return 0;
    if (got <= 0) {
        int lost = c->waiting;
        errors += lost;
        c->waiting = 0;
        redial(c);
        return lost;
    }
    c->filled += got;
    if (!c->waiting) return 0;
    if (!c->expected) read_head(c);
    if (!c->expected || c->filled < c->expected) return 0;
    c->waiting = 0;
    count_answer(c, monotonic());
    if (c->closing) redial(c);
    return 1;
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static double quantile_ms(double share) {
    return latency_count ? latencies[(size_t)((latency_count - 1) * share)] / 1000.0 : 0;
}

static void report(int connections, size_t first, size_t late) {
    int used_up = next_request >= request_count && last_answer < ends;
    double seconds = ((used_up ? last_answer : ends) - counted_from) / (double)SECOND;
    qsort(latencies, latency_count, sizeof *latencies, by_size);
    printf("{\"connections\":%d,\"seconds\":%.3f,\"rps\":%.1f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"p999_ms\":%.3f,"
           "\"max_ms\":%.3f,\"slowest_ms\":%.3f,\"sent\":%zu,\"next\":%zu,\"late\":%zu,\"errors\":%zu,"
           "\"unanswered\":%zu,\"statuses\":{",
           connections, seconds, seconds > 0 ? in_window / seconds : 0, quantile_ms(0.5), quantile_ms(0.99),
           quantile_ms(0.999), quantile_ms(1), slowest / 1e6, next_request - first, next_request, late, errors,
           unanswered);
    const char *comma = "";
    for (int status = 0; status < 600; status++)
        if (statuses[status]) {
            printf("%s\"%d\":%zu", comma, status, statuses[status]);
            comma = ",";
        }
    printf("}}\n");
}

int main(int argc, char **argv) {
    const char *file = NULL;
    int port = 0, connections = 1, option;
    double seconds = 5, warm_up = 0.5, rate = 0;
    size_t first = 0, most = SIZE_MAX;
    while ((option = getopt(argc, argv, "p:f:c:d:w:r:n:m:")) > 0) switch (option) {
            case 'p': port = atoi(optarg); break;
            case 'f': file = optarg; break;
            case 'c': connections = atoi(optarg); break;
            case 'd': seconds = atof(optarg); break;
            case 'w': warm_up = atof(optarg); break;
            case 'r': rate = atof(optarg); break;
            case 'n': first = strtoul(optarg, NULL, 10); break;
            case 'm': most = strtoul(optarg, NULL, 10); break;
            default: return 2;
        }
    if (!file || !port || connections < 1) return fprintf(stderr, "load: -p PORT and -f FILE are needed\n"), 2;
    read_requests(file);
    next_request = first < request_count ? first : request_count;
    if (most < request_count - next_request) request_count = next_request + most;
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* never another machine */
    poll_fd = epoll_create1(0);

    Connection *all = calloc(connections, sizeof *all), **idle = malloc(connections * sizeof *idle);
    int idle_count = 0, owed = 0;
    for (int i = 0; i < connections; i++) dial(idle[idle_count++] = &all[i]);

    started = last_answer = monotonic();
    counted_from = started + (int64_t)(warm_up * SECOND);
    ends = counted_from + (int64_t)(seconds * SECOND);
    size_t due_count = 0;
    for (struct epoll_event events[256];;) {
        int64_t now = monotonic(), nap = NAP_MAX;
        int more = now < ends && next_request < request_count;
        while (more && idle_count) {
            int64_t due = rate > 0 ? started + (int64_t)(due_count * SECOND / rate) : now;
            if (due > now) {
                nap = due - now < nap ? due - now : nap;
                break;
            }
            due_count++;
            owed++;
            more = begin(idle[--idle_count], due) && next_request < request_count;
        }
        if (!owed && !more) break;
        if (now > ends + DRAIN_S * SECOND) break;
        struct timespec wait = {nap / SECOND, nap % SECOND};
        int ready = epoll_pwait2(poll_fd, events, 256, &wait, NULL);
        for (int i = 0; i < ready; i++) {
            Connection *c = events[i].data.ptr;
            if (events[i].events & EPOLLOUT) {
                watch(c, EPOLL_CTL_MOD, EPOLLIN);
                push(c);
            }
            if (events[i].events & ~EPOLLOUT && take(c)) {
                idle[idle_count++] = c;
                owed--;
            }
        }
    }
    unanswered = errors + owed;
    size_t planned = rate > 0 ? (size_t)((warm_up + seconds) * rate) : 0;
    report(connections, first, planned > due_count ? planned - due_count : 0);
    return 0;
}
