package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// Hook is where a program runs: a TCX hook of one device.
type Hook struct {
	Namespace *os.File // of the device
	Index     int      // of the device in it
	Attach    ebpf.AttachType
	First     bool // before what others attached; else behind it
}

// Attach makes sure that the program is on the hook, by a link pinned under
// name. Where it is already, nothing is touched; another program of ours is
// replaced in one step. A hook of a device that is gone, or that another
// device has now, is made anew.
func (p *Pins) Attach(name string, h Hook, program *ebpf.Program) error {
	id, err := ID(program)
	if err != nil {
		return err
	}
	l, on, err := p.attached(name)
	if err != nil {
		return err
	}
	if l != nil {
		defer l.Close()
		if on.index == h.Index {
			if on.program == id {
				return nil
			}
			if err := l.Update(program); err != nil {
				return fmt.Errorf("replace the program of %s: %w", name, err)
			}
			return nil
		}
		if err := p.Remove(name); err != nil {
			return err
		}
	}
	return p.attach(name, h, program)
}

func (p *Pins) attach(name string, h Hook, program *ebpf.Program) error {
	options := link.TCXOptions{Interface: h.Index, Program: program, Attach: h.Attach}
	if h.First {
		options.Anchor = link.Head()
	}
	return kernel.In(h.Namespace, func() error {
		l, err := link.AttachTCX(options)
		for end := time.Now().Add(releaseTime); errors.Is(err, unix.EEXIST) && time.Now().Before(end); l, err = link.AttachTCX(options) {
			if l, err = holder(h, program); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("attach program %s: %w", name, err)
		}
		defer l.Close() // the pin keeps it
		if err := l.Pin(p.Path(name)); err != nil {
			return fmt.Errorf("pin the link of %s: %w", name, err)
		}
		return nil
	})
}

// releaseTime bounds the wait for a link whose last pin was removed: the
// kernel detaches it a little later.
const releaseTime = time.Second

// holder opens the link that has the program on the hook already.
func holder(h Hook, program *ebpf.Program) (link.Link, error) {
	id, err := ID(program)
	if err != nil {
		return nil, err
	}
	result, err := link.QueryPrograms(link.QueryOptions{Target: h.Index, Attach: h.Attach})
	if err != nil {
		return nil, err
	}
	for _, p := range result.Programs {
		if held, ok := p.LinkID(); ok && p.ID == id {
			return link.NewFromID(held)
		}
	}
	return nil, fs.ErrNotExist
}

// Attached says whether the program is on the hook of a device by the link
// pinned under name.
func (p *Pins) Attached(name string, index int, program *ebpf.Program) (bool, error) {
	id, err := ID(program)
	if err != nil {
		return false, err
	}
	l, on, err := p.attached(name)
	if l == nil || err != nil {
		return false, err
	}
	return on.index == index && on.program == id, l.Close()
}

// place is what a link joins. A link whose device is gone has index 0.
type place struct {
	index   int
	program ebpf.ProgramID
}

// attached opens a pinned link; nil if there is none.
func (p *Pins) attached(name string) (link.Link, place, error) {
	l, err := link.LoadPinnedLink(p.Path(name), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, place{}, nil
	}
	if err != nil {
		return nil, place{}, fmt.Errorf("open the link of %s: %w", name, err)
	}
	info, err := l.Info()
	if err != nil {
		return nil, place{}, errors.Join(fmt.Errorf("read the link of %s: %w", name, err), l.Close())
	}
	tcx := info.TCX()
	if tcx == nil {
		return nil, place{}, errors.Join(fmt.Errorf("pin %s is no TCX link", name), l.Close())
	}
	return l, place{index: int(tcx.Ifindex), program: info.Program}, nil
}

// ID is the kernel's number of a program.
func ID(program *ebpf.Program) (ebpf.ProgramID, error) {
	info, err := program.Info()
	if err != nil {
		return 0, fmt.Errorf("read a program: %w", err)
	}
	id, ok := info.ID()
	if !ok {
		return 0, errors.New("the kernel does not number programs: Linux 6.6 is needed")
	}
	return id, nil
}

// Running lists the programs on a TCX hook of a device of the calling thread's
// namespace (kernel.In), in the order in which they run.
func Running(index int, at ebpf.AttachType) ([]ebpf.ProgramID, error) {
	result, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: at})
	if err != nil {
		return nil, fmt.Errorf("list the programs of device %d: %w", index, err)
	}
	ids := make([]ebpf.ProgramID, len(result.Programs))
	for i, p := range result.Programs {
		ids[i] = p.ID
	}
	return ids, nil
}

// Alone detaches every other program from a hook.
func Alone(h Hook, ours *ebpf.Program) error {
	id, err := ID(ours)
	if err != nil {
		return err
	}
	return kernel.In(h.Namespace, func() error {
		result, err := link.QueryPrograms(link.QueryOptions{Target: h.Index, Attach: h.Attach})
		if err != nil {
			return fmt.Errorf("list the programs of device %d: %w", h.Index, err)
		}
		for _, p := range result.Programs {
			if p.ID == id {
				continue
			}
			if err := detach(h, p); err != nil {
				return fmt.Errorf("detach program %d from device %d: %w", p.ID, h.Index, err)
			}
		}
		return nil
	})
}

// detach takes a program off a hook, whether a link holds it there or not.
func detach(h Hook, p link.AttachedProgram) error {
	if id, ok := p.LinkID(); ok && id != 0 {
		l, err := link.NewFromID(id)
		if err != nil {
			return err
		}
		return errors.Join(l.Detach(), l.Close())
	}
	program, err := ebpf.NewProgramFromID(p.ID)
	if err != nil {
		return err
	}
	return errors.Join(link.RawDetachProgram(link.RawDetachProgramOptions{Target: h.Index, Program: program, Attach: h.Attach}), program.Close())
}
