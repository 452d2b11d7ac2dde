package vnode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/moby/sys/user"

	"sublet/datapath/kernel"
)

// owner tells whose a node is. A user namespace whose file was lost is asked
// whose it is and gets a file again: a node is not made anew for that.
func (p *Part) owner(key string) (uint32, error) {
	uid, err := p.host.Owner(key)
	if err != nil || uid != kernel.NoOwner {
		return uid, err
	}
	userns, err := kernel.UserNamespace(p.host.Path(key))
	if err != nil {
		return uid, err
	}
	defer userns.Close()
	if kernel.SameFile(userns, "/proc/self/ns/user") {
		return uid, nil // we make none like that
	}
	return p.owners.adopt(userns)
}

// adopt is the user of a user namespace without a file. If the user got another
// one meanwhile, that one has the file.
func (o *owners) adopt(userns *os.File) (uint32, error) {
	uid, base, err := mappedTo(userns)
	if err != nil || uid == kernel.NoOwner {
		return uid, err
	}
	file, err := kernel.OpenNamespace(o.host.OwnerFile(uid))
	if err == nil {
		return uid, file.Close()
	}
	if errors.Is(err, os.ErrNotExist) {
		err = errors.Join(o.keep(uid, base), kernel.BindConcealed(userns, o.host.OwnerFile(uid)))
	}
	return uid, err
}

// mappedTo reads which user is root in a user namespace: the kernel tells of a
// process inside, which is made for that. It is the tenant's, who may stop or
// kill it, but what the kernel tells of it is not theirs. NoOwner: it is none that
// users made.
func mappedTo(userns *os.File) (uid, base uint32, err error) {
	nsenter, err := findNsenter()
	if err != nil {
		return kernel.NoOwner, 0, err
	}
	cmd := exec.Command(nsenter, "--user=/proc/self/fd/3", "--", "/bin/cat")
	cmd.ExtraFiles, cmd.Env = []*os.File{userns}, []string{}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return kernel.NoOwner, 0, err
	}
	if err := cmd.Start(); err != nil {
		return kernel.NoOwner, 0, err
	}
	defer func() {
		stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	process := fmt.Sprintf("/proc/%d/", cmd.Process.Pid)
	for end := time.Now().Add(answerTime); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if kernel.SameFile(userns, process+"ns/user") {
			return readMap(process + "uid_map")
		}
	}
	return kernel.NoOwner, 0, fmt.Errorf("whose user namespace %s is %w: no process enters it within %s", userns.Name(), kernel.ErrUnseen, answerTime)
}

// readMap is the user that users mapped to root, and the range of the others.
func readMap(path string) (uid, base uint32, err error) {
	have, err := user.ParseIDMapFile(path)
	if err != nil {
		return kernel.NoOwner, 0, fmt.Errorf("read %s: %w", path, err)
	}
	if len(have) == 0 {
		return kernel.NoOwner, 0, nil
	}
	uid = uint32(have[0].ParentID)
	if len(have) > 1 {
		base = uint32(have[1].ParentID) - 1
	}
	want := users(uid, base)
	for i, m := range have {
		if i >= len(want) || int(m.ID) != want[i].ContainerID || int(m.ParentID) != want[i].HostID || int(m.Count) != want[i].Size {
			return kernel.NoOwner, 0, nil
		}
	}
	return uid, base, nil
}
