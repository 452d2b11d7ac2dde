package vnode

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"sublet/datapath/image"
	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// nodeImage is the image that a node runs.
type nodeImage struct {
	Name string     `json:"name"` // as its tenant wrote it
	ID   string     `json:"id"`   // in the store; "": a directory of the operator's
	Root rootFS     `json:"root"`
	Does vnet.Setup `json:"does"` // what it says: command, variables, working directory

	Entrypoint []string `json:"entrypoint,omitempty"` // what its command begins with
	Exposed    []string `json:"exposed,omitempty"`    // ports that it says it serves
}

const imageSuffix = ".image"

func (p *Part) imagePath(key string) string { return p.setupPath(key) + imageSuffix }

// imageOf reads what image a node runs; the zero value: none.
func (p *Part) imageOf(key string) (n nodeImage, err error) {
	text, err := os.ReadFile(p.imagePath(key))
	if errors.Is(err, os.ErrNotExist) {
		return n, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	return n, err
}

// imageTime is how long a step waits for an image: one that has to be fetched is
// waited for without holding up other nodes.
const imageTime = 300 * time.Millisecond

// setImage sees to it that a node runs the image that it is given. awaited: it is
// on its way, and Problems says so.
func (p *Part) setImage(s plan.Setup) (awaited bool, err error) {
	key := s.Key()
	was, err := p.imageOf(key)
	if err != nil {
		return false, err
	}
	var now nodeImage
	_, expected := p.awaited.Load(key)
	if s.RootImage() == "" {
		p.leaveImage(key)
	} else {
		p.awaited.Store(key, true) // before the fetch may end: Fetched takes it back
		now, err = p.fetch(s)
	}
	if awaited = errors.Is(err, image.ErrFetching); awaited || expected {
		p.expected.Store(key, true)
	}
	if awaited {
		return true, nil
	}
	p.awaited.Delete(key)
	if was.Exposed == nil { // a former version did not note it
		was.Exposed = now.Exposed
	}
	if err != nil || reflect.DeepEqual(was, now) {
		return false, err
	}
	if err := p.forget(key); err != nil || s.RootImage() == "" {
		return false, err
	}
	return false, writeWhole(p.imagePath(key), now)
}

// leaveImage has a node wait for no image.
func (p *Part) leaveImage(key string) {
	if p.Images != nil {
		p.Images.Leave(key)
	}
}

// forget ends what runs in a node and removes the layer that it wrote: its root
// file system becomes another one.
func (p *Part) forget(key string) error {
	lock := p.locks.of(key)
	lock.Lock()
	defer lock.Unlock()
	if err := p.host.Group(key).Sub(pauseGroup).Remove(); err != nil {
		return err
	}
	// By rm(1): os.RemoveAll holds a descriptor for each level of a tree, and how
	// deep this one is was the tenant's choice.
	for _, file := range []string{path.Join(p.scratchPath(key), layersDir), p.imagePath(key)} {
		if out, err := exec.Command("rm", "-rf", "--one-file-system", "--", file).CombinedOutput(); err != nil {
			return fmt.Errorf("remove %s: %w: %s", path.Base(file), err, out)
		}
	}
	return nil
}

// fetch gets the image that a node is given.
func (p *Part) fetch(s plan.Setup) (n nodeImage, err error) {
	if p.Images == nil {
		return n, errors.New("this host has no images")
	}
	uid, err := p.host.Owner(s.Key())
	if err != nil {
		return n, fmt.Errorf("the node is not here: %w", err)
	}
	userns, err := kernel.UserNamespace(p.host.Path(s.Key()))
	if err != nil {
		return n, err
	}
	defer userns.Close()
	var owner image.Owner
	mapped := image.Maps(p.Images.Dir, userns)
	if !mapped {
		if owner, err = rootOwner(p.host, uid); err != nil {
			return n, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), imageTime)
	defer cancel()
	p.Images.Want(s.Key(), string(s.Lease.Tenant), s.Image, owner)
	found, err := p.Images.Get(ctx, s.Image, owner)
	if err != nil {
		return n, err
	}
	p.Images.Leave(s.Key())
	if found.ID == "" {
		mapped = image.Maps(found.Root, userns)
	}
	n = nodeImage{Name: s.Image, ID: found.ID, Root: rootFS{Tree: found.Root, Mapped: mapped}, Does: does(found), Entrypoint: found.Config.Entrypoint, Exposed: exposed(found)}
	n.Root.Workdir = cmp.Or(s.Workdir, n.Does.Workdir)
	if len(encode(n.Does)) > vnet.MaxSetup {
		err = fmt.Errorf("image %s: its command and variables have more than %d bytes", s.Image, vnet.MaxSetup)
	}
	if user := n.Does.User; user != "" && !vnet.ValidUser(user) {
		err = fmt.Errorf("image %s: its user %.40q is none that a node has: state user", s.Image, user)
	}
	return n, err
}

func encode(v any) string {
	text, _ := json.Marshal(v) // of texts only
	return string(text)
}

// does is what an image's configuration says (OCI image specification, config.md).
func does(found image.Image) (s vnet.Setup) {
	if cmd := slices.Concat(found.Config.Entrypoint, found.Config.Cmd); len(cmd) > 0 {
		s.Run = []vnet.Program{{Cmd: cmd}}
	}
	for _, variable := range found.Config.Env {
		if name, value, ok := strings.Cut(variable, "="); ok && name != "" && !strings.ContainsRune(variable, 0) {
			if s.Env == nil {
				s.Env = make(map[string]string)
			}
			s.Env[name] = value
		}
	}
	if found.Config.WorkingDir != "" {
		s.Workdir = path.Clean("/" + found.Config.WorkingDir)
	}
	s.User = found.Config.User
	return s
}

// exposed are the ports that an image says it serves, a few, in order; what is none
// is left out (OCI image specification, config.md: port/tcp, port/udp or port).
func exposed(found image.Image) (ports []string) {
	const most = 64
	for port := range found.Config.ExposedPorts {
		number, protocol, stated := strings.Cut(port, "/")
		if !stated {
			protocol = "tcp"
		}
		n, err := strconv.ParseUint(number, 10, 16)
		if err == nil && n > 0 && slices.Contains([]string{"tcp", "udp", "sctp"}, protocol) {
			ports = append(ports, fmt.Sprintf("%d/%s", n, protocol))
		}
	}
	slices.SortFunc(ports, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	ports = slices.Compact(ports)
	return ports[:min(len(ports), most)]
}

// Exposed are the ports that images of nodes here say they serve, by node.
func (p *Part) Exposed() map[string][]string {
	files, err := filepath.Glob(filepath.Join(p.host.Dir(setupKind), "*"+imageSuffix))
	if err != nil {
		return nil
	}
	all := make(map[string][]string)
	for _, file := range files {
		key := strings.TrimSuffix(filepath.Base(file), imageSuffix)
		if n, err := p.imageOf(key); err == nil && len(n.Exposed) > 0 { // one that cannot be read, Observe tells of
			all[key] = n.Exposed
		}
	}
	return all
}

// over is what a node is given, and where that says nothing what its image says.
func (n nodeImage) over(s plan.Setup) (plan.Setup, error) {
	if len(s.Run) == 0 {
		s.Run = n.Does.Run
	} else if err := n.enter(&s.Run); err != nil && n.Name == s.Image { // else it is on its way
		return s, err
	}
	s.Workdir, s.User = cmp.Or(s.Workdir, n.Does.Workdir), cmp.Or(s.User, n.Does.User)
	env := make(map[string]string)
	for _, of := range []map[string]string{n.Does.Env, s.Env} {
		for name, value := range of {
			env[name] = value
		}
	}
	s.Env = env
	return s, nil
}

// enter puts the image's entry point, and its own arguments where none are
// stated, into the programs that ask for them.
func (n nodeImage) enter(programs *[]vnet.Program) error {
	*programs = slices.Clone(*programs)
	for i, program := range *programs {
		switch {
		case !program.Entrypoint:
			continue
		case len(program.Cmd) > 0:
			program.Cmd = slices.Concat(n.Entrypoint, program.Cmd)
		case len(n.Does.Run) > 0:
			program.Cmd = n.Does.Run[0].Cmd
		default:
			return fmt.Errorf("image %s has no command of its own: state cmd for program %d", n.Name, i+1)
		}
		program.Entrypoint = false
		(*programs)[i] = program
	}
	return nil
}

// whole is a node's setup with what its image says.
func (p *Part) whole(s plan.Setup) (plan.Setup, error) {
	if s.RootImage() == "" {
		return s, nil
	}
	n, err := p.imageOf(s.Key())
	if err != nil {
		return s, err
	}
	return n.over(s)
}

// rootOf is what the pause process of a node makes its root of.
func (p *Part) rootOf(key string) (root rootFS, owner image.Owner, err error) {
	uid, err := p.host.Owner(key)
	if err != nil {
		return root, owner, err
	}
	if owner, err = rootOwner(p.host, uid); err != nil {
		return root, owner, err
	}
	given, err := p.setupOf(key)
	if given.Machine() {
		given.Workdir = "" // which is in the machine
	}
	if err != nil || given.RootImage() == "" {
		return rootFS{Tree: "/", Host: true, Workdir: given.Workdir}, owner, err
	}
	n, err := p.imageOf(key)
	if err == nil && n.Name != given.Image {
		err = fmt.Errorf("its image %s is not here yet", given.Image)
	}
	return n.Root, owner, err
}

// hasImage says whether a node runs the image that it was given, or awaits it.
func (p *Part) hasImage(s plan.Setup) bool {
	if onItsWay, awaited := p.awaited.Load(s.Key()); s.RootImage() == "" || awaited && onItsWay.(bool) {
		return true
	}
	n, err := p.imageOf(s.Key())
	if err != nil || n.Name != s.Image {
		return false
	}
	_, err = os.Stat(n.Root.Tree)
	return err == nil
}

// collectImages removes images that no node here runs.
func (p *Part) collectImages(keys []string) error {
	if p.Images == nil {
		return nil
	}
	used := make(map[string]bool)
	for _, key := range keys {
		n, err := p.imageOf(key)
		if err != nil {
			return err
		}
		used[n.ID] = true
	}
	return p.Images.Collect(used)
}

// Expected says of a step that was done that it began to wait for an image, or was waited
// for: it has repaired nothing.
func (p *Part) Expected(s plan.Step) bool {
	_, expected := p.expected.LoadAndDelete(s.Item.Key())
	return expected && s.Item.Kind() == plan.KindSetup
}

// Fetched is told when an image has come, or cannot: nodes look again.
func (p *Part) Fetched() {
	p.awaited.Range(func(key, _ any) bool {
		p.awaited.CompareAndSwap(key, true, false)
		return true
	})
	select {
	case p.fetched <- struct{}{}:
	default: // nobody has looked since the last time
	}
}
