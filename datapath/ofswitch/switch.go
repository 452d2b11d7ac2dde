package ofswitch

import (
	"context"
	"crypto/tls"
	"errors"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

const (
	framesOfTurn   = 32 // of a port, before the next one's turn
	messagesOfTurn = 64
	tick           = 100 * time.Millisecond // how often entries are looked at for timeouts
	look           = time.Second            // how often ports are looked at
)

// Config of a switch.
type Config struct {
	Pipeline    pipeline.Config
	Ports       []string // devices; port numbers are 1, 2, ... in this order
	Controllers []channel.Target
	TLS         *tls.Config // for controllers that ask for it
	Standalone  bool        // forward as a learning switch while there is no controller
	Log         func(error)
}

// Switch is a running OpenFlow switch.
type Switch struct {
	config  Config
	hub     *channel.Hub
	tables  *pipeline.Switch
	devices []*device
	epoll   int
	event   int // an eventfd: something is in the hub
	start   time.Time
	current *received // the frame on its way; nil while a message is
}

// New opens the ports. It fails, with nothing open, if one cannot be opened.
func New(c Config) (s *Switch, err error) {
	s = &Switch{config: c, start: time.Now(), epoll: -1, event: -1}
	s.hub = channel.NewHub(s.notify)
	s.tables = pipeline.New(c.Pipeline, s)
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if s.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, err
	}
	if err := s.watch(s.event, -1); err != nil {
		return nil, err
	}
	for i, name := range c.Ports {
		d, err := openDevice(name, uint32(i+1))
		if err != nil {
			return nil, err
		}
		s.devices = append(s.devices, d)
		if err := s.watch(d.fd, i); err != nil {
			return nil, err
		}
	}
	s.lookAtPorts()
	return s, nil
}

func (s *Switch) watch(fd, tag int) error {
	return unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(tag)})
}

// Close gives up the ports.
func (s *Switch) Close() {
	for _, d := range s.devices {
		unix.Close(d.fd)
	}
	for _, fd := range []int{s.epoll, s.event} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

func (s *Switch) notify() { unix.Write(s.event, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func (s *Switch) now() int64 { return int64(time.Since(s.start)) }

// Run carries frames until ctx is done, or until it cannot listen for a controller.
func (s *Switch) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var connections sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for _, t := range s.config.Controllers {
		connections.Go(func() {
			if err := s.hub.Run(ctx, t, s.config.TLS, s.config.Log); err != nil {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
				cancel()
			}
		})
	}
	defer context.AfterFunc(ctx, s.notify)()
	err := s.loop(ctx)
	cancel()
	s.hub.Close()
	connections.Wait()
	return errors.Join(err, failed)
}

// loop is the one thread of the switch.
func (s *Switch) loop(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	events := make([]unix.EpollEvent, len(s.devices)+1)
	var expired, looked int64
	for ctx.Err() == nil {
		n, err := unix.EpollWait(s.epoll, events, int(tick/time.Millisecond))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		for _, e := range events[:max(n, 0)] {
			if e.Fd < 0 {
				s.messages()
			} else {
				s.frames(s.devices[e.Fd])
			}
		}
		if now := s.now(); now-expired >= int64(tick) {
			s.tables.Expire(now)
			expired = now
			if now-looked >= int64(look) {
				s.lookAtPorts()
				looked = now
			}
		}
	}
	return nil
}

// messages takes some of what controllers have sent, and wakes itself up for the rest.
func (s *Switch) messages() {
	var b [8]byte
	unix.Read(s.event, b[:])
	s.tables.Standalone = s.config.Standalone && s.hub.Connected() == 0
	for range messagesOfTurn {
		select {
		case in := <-s.hub.In:
			s.hub.Handle(in, s)
		default:
			return
		}
	}
	s.notify()
}

// Do does what a controller's message asks.
func (s *Switch) Do(m of13.Message) (of13.Message, error) { return s.tables.Do(s.now(), m) }

// frames takes some frames of a port.
func (s *Switch) frames(d *device) {
	var r received
	now := s.now()
	s.current = &r
	for range framesOfTurn {
		if !d.read(&r) {
			break
		}
		s.tables.Receive(now, d.number, r.frame)
	}
	s.current = nil
}

// lookAtPorts tells of devices that came up, went down or away.
func (s *Switch) lookAtPorts() {
	for _, d := range s.devices {
		if p, err := d.describe(); err != nil {
			s.tables.RemovePort(d.number)
		} else {
			s.tables.SetPort(s.now(), p)
		}
	}
}

// Send sends a frame out of a port.
func (s *Switch) Send(port, _ uint32, frame []byte) {
	s.devices[port-1].write(frame, s.current)
}

// PacketIn hands a packet to controllers.
func (s *Switch) PacketIn(m *of13.PacketIn) { s.hub.PacketIn(m) }

// FlowRemoved tells controllers of an entry that is gone.
func (s *Switch) FlowRemoved(m *of13.FlowRemoved) { s.hub.FlowRemoved(m) }

// PortStatus tells controllers of a port.
func (s *Switch) PortStatus(m *of13.PortStatus) { s.hub.PortStatus(m) }
