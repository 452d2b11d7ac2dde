package probe

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sublet/measure"
)

// answerTime is how long a ping's answer is waited for: longer than any queue
// that is still of use.
const answerTime = time.Second

// reflect sends the run's pings of one flow back to where they came from,
// until the context ends, then closes the socket.
func reflect(ctx context.Context, fd int, run uint64, id int) {
	precise()
	defer unix.Close(fd)
	buffer := make([]byte, pingSize+1)
	for ctx.Err() == nil {
		n, from, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil && !transient(err) {
			return
		}
		h, ok := parseHeader(buffer[:max(n, 0)])
		if err != nil || !ok || n != pingSize || h.run != run || h.flow != uint32(id) || from == nil {
			continue
		}
		_ = unix.Sendto(fd, buffer[:n], 0, from) // a lost answer is a lost ping
	}
}

// pinger measures round trips by a connected socket: small datagrams at a
// steady interval, whether answered or not.
type pinger struct {
	fd      int
	header  header       // of every ping, but for seq
	samples []float64    // us
	sent    atomic.Int64 // pings sent so far
	over    atomic.Int64 // when to stop waiting for answers, ns; 0: still sending
}

// ping sends for a length of time and sums up.
func ping(ctx context.Context, fd int, h header, interval, length time.Duration) roundTrip {
	p := &pinger{fd: fd, header: h}
	var listening sync.WaitGroup
	listening.Go(func() { p.listen(ctx) })
	p.send(ctx, interval, length)
	p.over.Store(monotonic() + int64(answerTime))
	listening.Wait()
	return roundTrip{
		Sent: int(p.sent.Load()), Received: len(p.samples),
		P50: measure.Percentile(p.samples, 50), P99: measure.Percentile(p.samples, 99),
	}
}

func (p *pinger) send(ctx context.Context, interval, length time.Duration) {
	done := make(chan struct{})
	go func() { // on a thread of its own, which ends with it
		defer close(done)
		precise()
		packet, h := make([]byte, pingSize), p.header
		begin := monotonic()
		for due := begin; due < begin+int64(length) && ctx.Err() == nil; due += int64(interval) {
			sleepUntil(due)
			h.put(packet)
			binary.BigEndian.PutUint64(packet[headerSize:], uint64(monotonic()))
			_, _ = unix.Write(p.fd, packet) // one that was not sent is not answered
			h.seq++
			p.sent.Add(1)
		}
	}()
	<-done
}

// listen notes answers until all have come or the time for them is over.
func (p *pinger) listen(ctx context.Context) {
	precise()
	want := p.header
	buffer := make([]byte, pingSize+1)
	for ctx.Err() == nil {
		n, err := unix.Read(p.fd, buffer)
		now := monotonic()
		if err != nil && !transient(err) {
			return
		}
		h, ok := parseHeader(buffer[:max(n, 0)])
		if err == nil && ok && n == pingSize && h.run == want.run && h.flow == want.flow && h.epoch == want.epoch {
			sent := int64(binary.BigEndian.Uint64(buffer[headerSize:]))
			p.samples = append(p.samples, float64(now-sent)/1e3)
		}
		over := p.over.Load()
		if over != 0 && (now >= over || int64(len(p.samples)) >= p.sent.Load()) {
			return
		}
	}
}
