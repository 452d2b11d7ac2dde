package openflow

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"sublet/plan"
	"sublet/vnet"
)

// A switch that goes to another host takes along what its process has kept for the next
// one (sublet openflow run --keep), as a tar archive of those files and of clockFile. The
// log comes first: counters of entries that it does not have are nobody's.
//
// What is flown in the kernel stays: the new process decides about it anew.
var carriedFiles = []string{"state", "counts", "slices", "numbers"}

const (
	// clockFile has the clock of the host, in nanoseconds, by which times in the others
	// are.
	clockFile = "clock"
	// movedFile tells the process by how much they differ here.
	movedFile = "moved"
	// mostCarried bounds all of them, in bytes; 65,536 entries take some 30 MB.
	mostCarried = 256 << 20
)

// SaveKept writes the archive of a switch, which goes on.
func (p *Part) SaveKept(key string, w io.Writer) error {
	if _, _, ok := plan.ParseSwitchNamespace(key, vnet.SwitchOpenFlow); !ok {
		return fmt.Errorf("%s is no OpenFlow switch", key)
	}
	archive := tar.NewWriter(w)
	clock := strconv.FormatInt(monotonic(), 10)
	if err := archive.WriteHeader(&tar.Header{Name: clockFile, Mode: 0o600, Size: int64(len(clock))}); err != nil {
		return err
	}
	if _, err := io.WriteString(archive, clock); err != nil {
		return err
	}
	for _, name := range carriedFiles {
		if err := p.saveFile(archive, key, name); err != nil {
			return fmt.Errorf("save %s of switch %s: %w", name, key, err)
		}
	}
	return archive.Close()
}

func (p *Part) saveFile(archive *tar.Writer, key, name string) error {
	f, err := os.Open(p.file(key, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.CopyN(archive, f, info.Size()) // it may grow meanwhile
	return err
}

// BringKept replaces the process of a switch by one that begins with what an archive has.
func (p *Part) BringKept(ctx context.Context, key string, r io.Reader) error {
	spool, err := os.CreateTemp(p.dir(key), "kept")
	if err != nil {
		return fmt.Errorf("switch %s is not here: %w", key, err)
	}
	defer spool.Close()
	if err := os.Remove(spool.Name()); err != nil {
		return err
	}
	if _, err = io.Copy(spool, io.LimitReader(r, mostCarried)); err == nil {
		_, err = spool.Seek(0, io.SeekStart)
	}
	if err != nil {
		return err
	}
	c, err := p.beginWith(key, tar.NewReader(spool))
	if c == nil {
		return err
	}
	return errors.Join(err, c.wait(ctx))
}

// beginWith has a process come that begins with what an archive has.
func (p *Part) beginWith(key string, archive *tar.Reader) (*coming, error) {
	p.busy.Lock() // nobody else starts it
	defer p.busy.Unlock()
	s := p.wished(key)
	if s.OpenFlow == nil {
		return nil, fmt.Errorf("switch %s is not here", key)
	}
	p.end(key)
	if err := errors.Join(p.group(key).Remove(), p.forget(key)); err != nil {
		return nil, err
	}
	err := p.bringFiles(key, archive)
	if err != nil { // it begins with nothing
		err = errors.Join(fmt.Errorf("bring what switch %s keeps: %w", key, err), p.forget(key))
	}
	return p.begin(s, false), err
}

func (p *Part) bringFiles(key string, archive *tar.Reader) error {
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if head.Typeflag != tar.TypeReg {
			return fmt.Errorf("%q is not what switches keep", head.Name)
		}
		switch {
		case head.Name == clockFile:
			err = p.bringClock(key, archive)
		case slices.Contains(carriedFiles, head.Name):
			err = p.bringFile(key, head.Name, archive)
		default:
			err = fmt.Errorf("%q is not what switches keep", head.Name)
		}
		if err != nil {
			return err
		}
	}
}

func (p *Part) bringClock(key string, r io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(r, 64))
	if err != nil {
		return err
	}
	there, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("read %s: %w", clockFile, err)
	}
	return p.write(key, movedFile, strconv.AppendInt(nil, monotonic()-there, 10))
}

func (p *Part) bringFile(key, name string, r io.Reader) error {
	f, err := os.OpenFile(p.file(key, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

// monotonic is the clock of programs, by which entries' times are.
func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it cannot fail
	return t.Nano()
}
