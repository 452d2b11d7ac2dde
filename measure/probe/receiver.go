package probe

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// receiver is the end of a flow: a sink, a reflector and a TCP listener.
type receiver struct {
	flow     flow
	sink     *sink
	listener *net.TCPListener

	mu    sync.Mutex
	conns []*net.TCPConn // accepted and greeted
}

// openReceiver makes a flow's receiver; it lives until the context ends.
func openReceiver(ctx context.Context, run uint64, f flow) (*receiver, ports, error) {
	sink, udp, err := openSink(run, f)
	if err != nil {
		return nil, ports{}, err
	}
	if f.Frames != 0 { // nobody answers, and nobody connects
		go sink.loop(ctx)
		return &receiver{flow: f, sink: sink}, ports{UDP: udp, TCP: udp}, nil
	}
	echo, pong, err := udpSocket(f, 0)
	if err != nil {
		unix.Close(sink.fd)
		return nil, ports{}, err
	}
	listener, tcp, err := listenTCP(ctx, f)
	if err != nil {
		return nil, ports{}, errors.Join(err, unix.Close(sink.fd), unix.Close(echo))
	}
	r := &receiver{flow: f, sink: sink, listener: listener}
	go sink.loop(ctx)
	go reflect(ctx, echo, run, f.ID)
	go r.accept(ctx, run)
	return r, ports{UDP: udp, Ping: pong, TCP: tcp}, nil
}

// strangers bounds the connections that are waited on for their hello.
const strangers = 16

// accept takes the flow's streams as they come until the context ends. One
// that does not say the run's number in time is closed.
func (r *receiver) accept(ctx context.Context, run uint64) {
	defer context.AfterFunc(ctx, func() { r.listener.Close() })()
	slots := make(chan struct{}, strangers)
	for {
		conn, err := r.listener.AcceptTCP()
		if err != nil {
			return
		}
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			r.admit(conn, run)
		}()
	}
}

func (r *receiver) admit(conn *net.TCPConn, run uint64) {
	if !greeted(conn, run, r.flow) {
		conn.Close()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.conns) >= r.flow.Streams {
		conn.Close()
		return
	}
	r.conns = append(r.conns, conn)
}

// streams waits for all streams to be there and returns those that are.
func (r *receiver) streams(ctx context.Context, limit time.Duration) []*net.TCPConn {
	for begin := time.Now(); ; time.Sleep(limit / 100) {
		r.mu.Lock()
		conns := r.conns
		r.mu.Unlock()
		if len(conns) >= r.flow.Streams || time.Since(begin) > limit || ctx.Err() != nil {
			return conns
		}
	}
}

// hangUp closes the streams; new ones may come.
func (r *receiver) hangUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.conns {
		conn.Close()
	}
	r.conns = nil
}

// drainTime is how long streams may take to end after their senders stopped.
const drainTime = 2 * time.Second

// soak reads all streams to their end and snapshots the window. A third of
// the tail each is for a late begin, a late end, and for commands that did
// not reach the two ends at once.
func (r *receiver) soak(w *window, c command) {
	slack := c.Tail / 3
	begin, end := time.Until(w.from)+slack, time.Until(w.to)+2*slack
	defer time.AfterFunc(begin, w.forceBegin).Stop()
	defer time.AfterFunc(end, w.forceEnd).Stop()
	until := w.to.Add(c.Tail + drainTime)
	var reading sync.WaitGroup
	for _, conn := range w.data {
		reading.Go(func() { drain(conn, until, w.got) })
	}
	reading.Wait()
}
