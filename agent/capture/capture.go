// Package capture writes the packets of one network device, in both
// directions, as pcapng while they pass.
//
//	device --AF_PACKET--> socket --> pcapng blocks --> w (file, pipe, session)
//
// The socket lives in the namespace of the device; nothing else of the
// process does. Segments that the stack has not cut yet (GSO) are one packet,
// as everywhere on Linux.
package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"golang.org/x/sys/unix"
)

// Options bound a capture; zero means no bound (SnapLen: MaxSnapLen).
type Options struct {
	SnapLen     int // bytes kept of each packet
	MaxPackets  uint64
	MaxDuration time.Duration
	Filter      Filter
}

// MaxSnapLen is the largest packet kept whole, and what Wireshark accepts.
const MaxSnapLen = 256 << 10

func (o Options) normal() Options {
	if o.SnapLen <= 0 || o.SnapLen > MaxSnapLen {
		o.SnapLen = MaxSnapLen
	}
	if o.MaxPackets == 0 {
		o.MaxPackets = math.MaxUint64
	}
	return o
}

// flushEvery bounds how long a packet waits under load; when the device is
// idle nothing waits.
const flushEvery = 100 * time.Millisecond

// Stream captures device, in the network namespace that the file nsPath
// stands for, until ctx ends or a bound of opt is reached: then it returns nil.
// name and comment (which link this is) go into the file, and at the end the numbers
// of packets captured and dropped. It fails if w does, or if the device goes
// down or away; what was captured until then is written. A w that blocks must
// be ended by the caller.
func Stream(ctx context.Context, nsPath, device, name, comment string, opt Options, w io.Writer) error {
	opt = opt.normal()
	if opt.MaxDuration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, opt.MaxDuration)
		defer cancel()
	}
	var s *socket
	err := inNamespace(nsPath, func() (err error) {
		s, err = listen(device, opt)
		return err
	})
	if err != nil {
		return fmt.Errorf("capture %s in %s: %w", device, nsPath, err)
	}
	defer s.close()
	defer context.AfterFunc(ctx, s.interrupt)()
	c := &capture{socket: s, begun: time.Now()}
	if err := c.begin(name, comment, opt, w); err != nil {
		return fmt.Errorf("capture %s: %w", device, err)
	}
	if err := errors.Join(c.copy(opt.MaxPackets), c.finish()); err != nil {
		return fmt.Errorf("capture %s: %w", device, err)
	}
	return nil
}

// capture is one running Stream.
type capture struct {
	socket  *socket
	file    *pcapgo.NgWriter
	begun   time.Time
	flushed time.Time
	packets uint64
}

func (c *capture) begin(name, comment string, opt Options, w io.Writer) (err error) {
	link := pcapgo.NgInterface{
		Name:                name,
		Comment:             comment,
		OS:                  runtime.GOOS,
		LinkType:            layers.LinkTypeEthernet,
		TimestampResolution: 9, // nanoseconds
		SnapLength:          uint32(opt.SnapLen),
	}
	section := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Hardware: runtime.GOARCH, OS: runtime.GOOS, Application: "sublet"}}
	if c.file, err = pcapgo.NewNgWriterInterface(w, link, section); err != nil {
		return err
	}
	return c.flush()
}

// copy writes packets as they come, and flushes whenever none waits.
func (c *capture) copy(most uint64) error {
	for c.packets < most {
		p, err := c.socket.next(false)
		if errors.Is(err, unix.EAGAIN) {
			if err := c.flush(); err != nil {
				return err
			}
			p, err = c.socket.next(true)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return c.drain(most) // interrupted
		}
		if err == nil {
			err = c.write(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drainTime bounds what is still taken of a busy link after the end.
const drainTime = 100 * time.Millisecond

// drain writes what had passed before the end and waits in the socket.
func (c *capture) drain(most uint64) error {
	for until := time.Now().Add(drainTime); c.packets < most && time.Now().Before(until); {
		p, err := c.socket.waiting()
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		if err == nil {
			err = c.write(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *capture) write(p packet) error {
	info := gopacket.CaptureInfo{Timestamp: p.at, CaptureLength: len(p.data), Length: p.length}
	flags := pcapgo.NgEpbFlags{Direction: pcapgo.NgEpbFlagDirectionInbound}
	if p.outgoing {
		flags.Direction = pcapgo.NgEpbFlagDirectionOutbound
	}
	if err := c.file.WritePacketWithOptions(info, p.data, pcapgo.NgPacketOptions{Flags: &flags}); err != nil {
		return err
	}
	c.packets++
	if time.Since(c.flushed) > flushEvery {
		return c.flush()
	}
	return nil
}

func (c *capture) flush() error {
	c.flushed = time.Now()
	return c.file.Flush()
}

// finish writes the statistics.
func (c *capture) finish() error {
	dropped, err := c.socket.dropped()
	if err != nil {
		dropped = pcapgo.NgNoValue64
	}
	now := time.Now()
	stats := pcapgo.NgInterfaceStatistics{LastUpdate: now, StartTime: c.begun, EndTime: now, PacketsReceived: c.packets, PacketsDropped: dropped}
	return errors.Join(err, c.file.WriteInterfaceStats(0, stats), c.file.Flush())
}
