package capture

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/pcapgo"
)

// Merge writes what several Streams write into one file, with an interface for
// each, until all have ended. Packets are in the order in which they come here,
// with the time at which each was captured.
func Merge(ctx context.Context, from []io.Reader, w io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	files, err := openAll(from)
	if err != nil {
		return err
	}
	m := &merger{to: w, packets: make(chan merged)}
	for i, f := range files {
		if err := m.add(f); err != nil {
			return err
		}
		m.readers.Go(func() { m.read(ctx, i, f) })
	}
	go func() { m.readers.Wait(); close(m.packets) }()
	err = m.copy()
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(err, m.failed)
}

// openAll reads the beginning of each stream.
func openAll(from []io.Reader) (files []*pcapgo.NgReader, err error) {
	for _, r := range from {
		f, err := pcapgo.NewNgReader(r, pcapgo.DefaultNgReaderOptions)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// merger has what Merge does.
type merger struct {
	to      io.Writer
	file    *pcapgo.NgWriter
	packets chan merged
	readers sync.WaitGroup

	mu     sync.Mutex
	failed error
}

// merged is a packet of one of the streams.
type merged struct {
	data  []byte
	info  gopacket.CaptureInfo
	flags pcapgo.NgPacketOptions
}

func (m *merger) add(f *pcapgo.NgReader) error {
	link, err := f.Interface(0)
	if err != nil {
		return err
	}
	if m.file != nil {
		_, err = m.file.AddInterface(link)
		return err
	}
	m.file, err = pcapgo.NewNgWriterInterface(m.to, link, pcapgo.NgWriterOptions{SectionInfo: f.SectionInfo()})
	return err
}

func (m *merger) read(ctx context.Context, index int, f *pcapgo.NgReader) {
	for {
		data, info, flags, err := f.ReadPacketDataWithOptions()
		if err != nil {
			m.end(ctx, err)
			return
		}
		info.InterfaceIndex = index
		select {
		case m.packets <- merged{data, info, flags}:
		case <-ctx.Done():
			return
		}
	}
}

// end keeps why a stream ended, unless all are to.
func (m *merger) end(ctx context.Context, err error) {
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = errors.Join(m.failed, err)
}

func (m *merger) copy() error {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case p, more := <-m.packets:
			if !more {
				return m.file.Flush()
			}
			if err := m.file.WritePacketWithOptions(p.info, p.data, p.flags); err != nil {
				return err
			}
		case <-tick.C:
			if err := m.file.Flush(); err != nil {
				return err
			}
		}
	}
}
