/* A packet encoder in C: keyed noise, a packet, and its codes, from docs/reference/wire.md and keyed-noise.md.
 *
 * It is not a whole sensor: whoever calls it must store the next step of the key and the epoch before the first draw,
 * count draws and rounds so that they are never used twice, also over a loss of power, and send no more rounds in a window
 * than the plan has. It refuses draws beyond the counters of one epoch.
 *
 * Plain C99 without floating point on readings and without allocation. The table of the noise is a file, or flash,
 * that `sfumato sensor table` writes. AES and SHA-256 are here so that the file stands alone; a chip's own AES is faster,
 * and does not look bytes up in memory. Every draw compares with every threshold: the time says nothing.
 *
 * The program below it reads a request and prints the packet, or publishes it by MQTT 3.1.1:
 *   sfumato_sensor TABLE [HOST PORT TOPIC] < request
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- SHA-256 (FIPS 180-4), HMAC (RFC 2104), HKDF (RFC 5869) with one block of output */
typedef struct { uint32_t h[8]; uint64_t len; uint8_t buf[64]; } sha;
static const uint32_t K[64] = {
0x428a2f98,0x71374491,0xb5c0fbcf,0xe9b5dba5,0x3956c25b,0x59f111f1,0x923f82a4,0xab1c5ed5,0xd807aa98,0x12835b01,0x243185be,
0x550c7dc3,0x72be5d74,0x80deb1fe,0x9bdc06a7,0xc19bf174,0xe49b69c1,0xefbe4786,0x0fc19dc6,0x240ca1cc,0x2de92c6f,0x4a7484aa,
0x5cb0a9dc,0x76f988da,0x983e5152,0xa831c66d,0xb00327c8,0xbf597fc7,0xc6e00bf3,0xd5a79147,0x06ca6351,0x14292967,0x27b70a85,
0x2e1b2138,0x4d2c6dfc,0x53380d13,0x650a7354,0x766a0abb,0x81c2c92e,0x92722c85,0xa2bfe8a1,0xa81a664b,0xc24b8b70,0xc76c51a3,
0xd192e819,0xd6990624,0xf40e3585,0x106aa070,0x19a4c116,0x1e376c08,0x2748774c,0x34b0bcb5,0x391c0cb3,0x4ed8aa4a,0x5b9cca4f,
0x682e6ff3,0x748f82ee,0x78a5636f,0x84c87814,0x8cc70208,0x90befffa,0xa4506ceb,0xbef9a3f7,0xc67178f2};
#define ROR(x, n) ((x) >> (n) | (x) << (32 - (n)))
static void sha_block(sha *s, const uint8_t *p) {
  uint32_t w[64], a[8];
  for (int i = 0; i < 16; i++) w[i] = (uint32_t)p[4*i] << 24 | p[4*i+1] << 16 | p[4*i+2] << 8 | p[4*i+3];
  for (int i = 16; i < 64; i++)
    w[i] = w[i-16] + (ROR(w[i-15],7) ^ ROR(w[i-15],18) ^ w[i-15] >> 3) + w[i-7] + (ROR(w[i-2],17) ^ ROR(w[i-2],19) ^ w[i-2] >> 10);
  memcpy(a, s->h, 32);
  for (int i = 0; i < 64; i++) {
    uint32_t t = a[7] + (ROR(a[4],6) ^ ROR(a[4],11) ^ ROR(a[4],25)) + ((a[4] & a[5]) ^ (~a[4] & a[6])) + K[i] + w[i];
    uint32_t u = (ROR(a[0],2) ^ ROR(a[0],13) ^ ROR(a[0],22)) + ((a[0] & a[1]) ^ (a[0] & a[2]) ^ (a[1] & a[2]));
    memmove(a + 1, a, 28); a[4] += t; a[0] = t + u;
  }
  for (int i = 0; i < 8; i++) s->h[i] += a[i];
}
static void sha_init(sha *s) {
  static const uint32_t H[8] = {0x6a09e667,0xbb67ae85,0x3c6ef372,0xa54ff53a,0x510e527f,0x9b05688c,0x1f83d9ab,0x5be0cd19};
  memcpy(s->h, H, 32); s->len = 0;
}
static void sha_add(sha *s, const void *data, size_t n) {
  const uint8_t *p = data;
  while (n--) { s->buf[s->len++ % 64] = *p++; if (s->len % 64 == 0) sha_block(s, s->buf); }
}
static void sha_end(sha *s, uint8_t out[32]) {
  uint64_t bits = s->len * 8; uint8_t one = 0x80, zero = 0, tail[8];
  sha_add(s, &one, 1);
  while (s->len % 64 != 56) sha_add(s, &zero, 1);
  for (int i = 0; i < 8; i++) tail[i] = (uint8_t)(bits >> (56 - 8 * i));
  sha_add(s, tail, 8);
  for (int i = 0; i < 32; i++) out[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}
static void hmac(const uint8_t *key, size_t keylen, const void *m1, size_t n1, const void *m2, size_t n2, uint8_t out[32]) {
  uint8_t pad[64]; sha s;                                  /* keys here are 32 bytes, never above 64 */
  for (int i = 0; i < 64; i++) pad[i] = (uint8_t)((i < (int)keylen ? key[i] : 0) ^ 0x36);
  sha_init(&s); sha_add(&s, pad, 64); sha_add(&s, m1, n1); sha_add(&s, m2, n2); sha_end(&s, out);
  for (int i = 0; i < 64; i++) pad[i] ^= 0x36 ^ 0x5c;
  sha_init(&s); sha_add(&s, pad, 64); sha_add(&s, out, 32); sha_end(&s, out);
}
static void hkdf(const uint8_t key[32], const char *info, uint8_t out[32]) {
  uint8_t salt[32] = {0}, prk[32], one = 1;
  hmac(salt, 32, key, 32, "", 0, prk);
  hmac(prk, 32, info, strlen(info), &one, 1, out);
}

/* ---- AES-256, encryption of single blocks (FIPS 197) */
static uint8_t S[256]; static uint8_t W[240];
static uint8_t mul(uint8_t a, uint8_t b) {
  uint8_t p = 0;
  for (int i = 0; i < 8; i++) { if (b & 1) p ^= a; a = (uint8_t)(a << 1 ^ (a >> 7) * 0x1b); b >>= 1; }
  return p;
}
static void aes_key(const uint8_t key[32]) {
  for (int x = 0; x < 256; x++) {
    uint8_t inv = 0, r;
    for (int y = 1; x && y < 256; y++) if (mul((uint8_t)x, (uint8_t)y) == 1) inv = (uint8_t)y;
    r = inv;
    for (int i = 1; i < 5; i++) r ^= (uint8_t)(inv << i | inv >> (8 - i));
    S[x] = r ^ 0x63;
  }
  memcpy(W, key, 32);
  uint8_t rc = 1;
  for (int i = 32; i < 240; i += 4) {
    uint8_t t[4]; memcpy(t, W + i - 4, 4);
    if (i % 32 == 0) { uint8_t f = t[0]; t[0] = S[t[1]] ^ rc; t[1] = S[t[2]]; t[2] = S[t[3]]; t[3] = S[f]; rc = mul(rc, 2); }
    else if (i % 32 == 16) for (int j = 0; j < 4; j++) t[j] = S[t[j]];
    for (int j = 0; j < 4; j++) W[i + j] = W[i + j - 32] ^ t[j];
  }
}
static void aes(const uint8_t in[16], uint8_t out[16]) {
  uint8_t s[16], t[16];
  for (int i = 0; i < 16; i++) s[i] = in[i] ^ W[i];
  for (int r = 1; r < 15; r++) {
    for (int i = 0; i < 16; i++) t[i] = S[s[(i + 4 * (i % 4)) % 16]];
    for (int c = 0; c < 16; c += 4)
      for (int i = 0; i < 4; i++)
        s[c + i] = r == 14 ? t[c + i] : (uint8_t)(mul(t[c + i], 2) ^ mul(t[c + (i + 1) % 4], 3) ^ t[c + (i + 2) % 4] ^ t[c + (i + 3) % 4]);
    for (int i = 0; i < 16; i++) s[i] ^= W[16 * r + i];
  }
  memcpy(out, s, 16);
}

/* ---- the noise: a table of thresholds, one for all blocks of a draw */
typedef struct { uint32_t blocks, multiplier[8], size; const uint8_t *thresholds; } table;
static uint32_t be32(const uint8_t *p) { return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]; }
static uint64_t be64(const uint8_t *p) { return (uint64_t)be32(p) << 32 | be32(p + 4); }
static int64_t draw(const table *t, const uint8_t epoch[12], uint32_t n) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < t->blocks; i++) {
    uint8_t in[16], b[16]; uint32_t c = n * t->blocks + i;
    memcpy(in, epoch, 12);
    for (int j = 0; j < 4; j++) in[12 + j] = (uint8_t)(c >> (24 - 8 * j));
    aes(in, b);
    uint64_t hi = be64(b), lo = be64(b + 8); int64_t neg = (int64_t)(hi >> 63), m = 0;
    hi &= 0x7FFFFFFFFFFFFFFFULL;
    for (uint32_t k = 0; k < t->size; k++) {               /* a full scan: the same work for every value */
      uint64_t th = be64(t->thresholds + 16 * k), tl = be64(t->thresholds + 16 * k + 8);
      m += (th < hi) | ((th == hi) & (tl <= lo));
    }
    sum += (int64_t)t->multiplier[i] * ((m ^ -neg) + neg);
  }
  return sum;
}

/* ---- the lattice of a sensor: the unit of a count, by the four numbers of `sfumato sensor table` */
static int64_t unit_of(int32_t count, int32_t multiplier, int shift, int64_t zero, int64_t limit) {
  int64_t v = (int64_t)count * multiplier - zero + ((int64_t)1 << (shift - 1)), low = ((int64_t)1 << shift) - 1;
  int64_t near = v < 0 ? -((-v + low) >> shift) : v >> shift;                     /* down, also below 0 */
  return near > limit ? limit : near < -limit ? -limit : near;
}

/* ---- the packet, or 0 where the epoch does not hold its draws: begin a new one. `head` is the first 113 bytes and the name, as docs/reference/wire.md has them, status not masked */
static void put64(uint8_t *p, uint64_t v) { for (int i = 0; i < 8; i++) p[i] = (uint8_t)(v >> (56 - 8 * i)); }
static size_t packet(uint8_t *out, const uint8_t *head, size_t n, const uint8_t step_key[32], const uint8_t check_key[32],
                     const char *law, const table *t, const uint16_t *sensors, const int64_t *units, uint16_t count) {
  uint8_t noise[32], mac[32], code[32]; char info[160];
  if (((uint64_t)be32(head + 40) + count) * t->blocks > (uint64_t)1 << 32) return 0;   /* a block would come again */
  hkdf(step_key, "sfumato.seal.v1|noise", noise);
  hkdf(step_key, "sfumato.seal.v1|mac", mac);
  snprintf(info, sizeof info, "sfumato.noise.v1||%s", law);  /* LAW|NUMERATOR/DENOMINATOR */
  hkdf(noise, info, code);
  aes_key(code);
  memcpy(out, head, n);
  const uint8_t *epoch = head + 28; uint32_t first = be32(head + 40);
  hmac(mac, 32, "sfumato.wire.v1|status|", 23, head + 28, 16, code);
  out[57] ^= code[0];
  out[n] = (uint8_t)(count >> 8); out[n + 1] = (uint8_t)count;
  uint8_t *p = out + n + 2;
  for (uint16_t j = 0; j < count; j++, p += 10) {
    p[0] = (uint8_t)(sensors[j] >> 8); p[1] = (uint8_t)sensors[j];
    put64(p + 2, (uint64_t)(units[j] + draw(t, epoch, first + j)));
  }
  hmac(mac, 32, "sfumato.wire.v1|code|", 21, out, (size_t)(p - out), code);
  memcpy(p, code, 16); p += 16;
  hmac(check_key, 32, "sfumato.wire.v1|check|", 22, out, (size_t)(p - out), code);
  memcpy(p, code, 16); p += 16;
  return (size_t)(p - out);
}

/* ---- a program for tests on a computer: request on stdin, packet to stdout or to a broker */
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
static int digit(char c) {
  const char *all = "0123456789abcdef", *at = c ? strchr(all, c) : NULL;
  return at ? (int)(at - all) : -1;
}
static size_t hex(const char *s, uint8_t *out, size_t most) {                          /* most + 1 where there is more */
  size_t n = 0;
  for (; digit(s[0]) >= 0 && digit(s[1]) >= 0; s += 2) {
    if (n == most) return most + 1;
    out[n++] = (uint8_t)(digit(s[0]) << 4 | digit(s[1]));
  }
  return n;
}
static void fail(const char *why) { fprintf(stderr, "%s\n", why); exit(1); }
static void text(uint8_t **p, const char *s) {
  size_t n = strlen(s); *(*p)++ = (uint8_t)(n >> 8); *(*p)++ = (uint8_t)n; memcpy(*p, s, n); *p += n;
}
static size_t frame(uint8_t *out, uint8_t kind, const uint8_t *body, size_t n) { /* MQTT 3.1.1, 2.2.3: length in base 128 */
  size_t at = 0, left = n; out[at++] = kind;
  do { out[at++] = (uint8_t)(left % 128 | (left > 127 ? 128 : 0)); left /= 128; } while (left);
  memcpy(out + at, body, n); return at + n;
}
static void publish(const char *host, const char *port, const char *topic, const uint8_t *payload, size_t n) {
  struct addrinfo hints = {0}, *found; uint8_t body[20000], out[20016], got[4]; uint8_t *p = body;
  hints.ai_socktype = SOCK_STREAM;
  if (strlen(topic) > 1000) fail("topic");
  if (getaddrinfo(host, port, &hints, &found)) fail("no such host");
  int fd = socket(found->ai_family, SOCK_STREAM, 0);
  if (connect(fd, found->ai_addr, found->ai_addrlen)) fail("no broker");
  text(&p, "MQTT"); *p++ = 4; *p++ = 2; *p++ = 0; *p++ = 60; text(&p, "sfumato-c-twin");
  size_t size = frame(out, 0x10, body, (size_t)(p - body));
  if (write(fd, out, size) != (ssize_t)size || recv(fd, got, 4, MSG_WAITALL) != 4 || got[0] != 0x20 || got[3]) fail("refused");
  p = body; text(&p, topic); *p++ = 0; *p++ = 1; memcpy(p, payload, n); p += n;      /* QoS 1, packet id 1 */
  size = frame(out, 0x32, body, (size_t)(p - body));
  if (write(fd, out, size) != (ssize_t)size || recv(fd, got, 4, MSG_WAITALL) != 4 || got[0] != 0x40) fail("not acknowledged");
  size = frame(out, 0xe0, body, 0);
  if (write(fd, out, size) != (ssize_t)size) fail("not ended");
  close(fd); freeaddrinfo(found);
}
static int lattices(void) {                                /* a count and its four numbers in each line, to units */
  long count, multiplier; int shift; long long zero, limit;
  while (scanf("%ld %ld %d %lld %lld", &count, &multiplier, &shift, &zero, &limit) == 5)
    printf("%lld\n", (long long)unit_of((int32_t)count, (int32_t)multiplier, shift, zero, limit));
  return 0;
}
int main(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "lattices")) return lattices();
  static uint8_t file[1 << 20], head[177], out[16384]; uint8_t step_key[32], check_key[32];
  static char line[4096]; char law[100]; table t; uint16_t sensors[1024]; int64_t units[1024];
  FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
  if (!f) fail("no table");
  size_t have = fread(file, 1, sizeof file, f); fclose(f);
  t.blocks = be32(file);
  if (t.blocks < 1 || t.blocks > 8) fail("not a table");
  for (uint32_t i = 0; i < t.blocks; i++) t.multiplier[i] = be32(file + 4 + 4 * i);
  t.size = be32(file + 4 + 4 * t.blocks); t.thresholds = file + 8 + 4 * t.blocks;
  if (have != 8 + 4 * t.blocks + 16 * (uint64_t)t.size) fail("not a whole table");
  /* step key, check key, law, head, count, then a sensor and its lattice integer in each line */
  unsigned count, sensor; long long unit;
  if (!fgets(line, sizeof line, stdin) || hex(line, step_key, 32) != 32) fail("step key");
  if (!fgets(line, sizeof line, stdin) || hex(line, check_key, 32) != 32) fail("check key");
  if (scanf("%99s", law) != 1 || scanf("%4095s", line) != 1) fail("law and head");
  size_t n = hex(line, head, sizeof head);
  if (n < 114 || n > sizeof head || n != 113u + head[112] || scanf("%u", &count) != 1 || count > 1024) fail("head");
  for (unsigned j = 0; j < count; j++) {
    if (scanf("%u %lld", &sensor, &unit) != 2 || sensor > 65535) fail("reading");
    sensors[j] = (uint16_t)sensor; units[j] = unit;
  }
  size_t size = packet(out, head, n, step_key, check_key, law, &t, sensors, units, (uint16_t)count);
  if (!size) fail("the draws of this epoch are used up");
  if (argc == 5) publish(argv[2], argv[3], argv[4], out, size);
  for (size_t i = 0; i < size; i++) printf("%02x", out[i]);
  printf("\n");
  return 0;
}
