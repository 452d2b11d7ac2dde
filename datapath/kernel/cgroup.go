package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Cgroups says where the controllers are mounted: version 1, version 2, or
// both beside each other. Sublet mounts nothing itself.
type Cgroups struct {
	V1      map[string]string // controller -> mount point
	V2      string            // mount point, "" if not mounted
	V2Knows []string          // controllers that version 2 has
}

// Group is a control group: the same path below several mount points.
type Group struct {
	cgroups Cgroups
	path    string // relative to every mount point
	parent  *Group // of a Sub
}

// FindCgroups reads which hierarchies are mounted below root.
func FindCgroups(root string) (Cgroups, error) {
	c := Cgroups{V1: map[string]string{}}
	mounts, err := Mounts(OwnMounts)
	if err != nil {
		return c, err
	}
	for _, m := range mounts {
		if m.Within(root) {
			c.mount(m)
		}
	}
	if c.V2 != "" {
		known, _ := os.ReadFile(filepath.Join(c.V2, "cgroup.controllers"))
		c.V2Knows = strings.Fields(string(known))
	}
	return c, nil
}

// mount takes note of a hierarchy.
func (c *Cgroups) mount(m Mount) {
	switch m.Type {
	case "cgroup2":
		c.V2 = m.Point
	case "cgroup":
		for _, option := range strings.Split(m.Options, ",") {
			c.V1[option] = m.Point
		}
	}
}

// Controller is the mount point that has a controller, and its version; 0:
// nobody has it.
func (c Cgroups) Controller(name string) (mount string, version int) {
	if slices.Contains(c.V2Knows, name) {
		return c.V2, 2
	}
	if mount := c.V1[name]; mount != "" {
		return mount, 1
	}
	return "", 0
}

// tracker is the hierarchy in which every group's processes are counted, so
// that they can all be found.
func (c Cgroups) tracker() (string, error) {
	for _, name := range []string{"pids", "freezer"} {
		if mount, version := c.Controller(name); version != 0 {
			return mount, nil
		}
	}
	if c.V2 != "" {
		return c.V2, nil
	}
	return "", fmt.Errorf("no cgroup hierarchy is mounted here (mount -t cgroup2 none /sys/fs/cgroup; ip netns exec hides it, nsenter --net=FILE does not): %w", ErrNotSupported)
}

// Group names a group; nothing is made yet.
func (c Cgroups) Group(path string) Group { return Group{cgroups: c, path: path} }

// Sub names a group inside g that only tells its processes from others of g:
// it is where processes are tracked, and the limits are g's.
func (g Group) Sub(name string) Group {
	return Group{cgroups: g.cgroups, path: filepath.Join(g.path, name), parent: &g}
}

// Subs lists the names of the groups inside g.
func (g Group) Subs() ([]string, error) {
	return g.Sub("x").Siblings()
}

// mounts lists the distinct mount points that a group may use.
func (g Group) mounts() []string {
	var list []string
	if tracker, err := g.cgroups.tracker(); err == nil {
		list = append(list, tracker)
	}
	if g.parent != nil {
		return list
	}
	for _, name := range []string{"cpu", "memory"} {
		if mount, version := g.cgroups.Controller(name); version != 0 && !slices.Contains(list, mount) {
			list = append(list, mount)
		}
	}
	return list
}

// dirs lists the group's existing directories.
func (g Group) dirs() []string {
	var list []string
	for _, mount := range g.mounts() {
		dir := filepath.Join(mount, g.path)
		if _, err := os.Stat(dir); err == nil {
			list = append(list, dir)
		}
	}
	return list
}

// Look says whether groups can be looked at: where processes are tracked, a
// control group file system is what is seen.
func (g Group) Look() error {
	if _, err := g.cgroups.tracker(); err != nil {
		return err
	}
	for _, mount := range g.mounts() {
		var fs unix.Statfs_t
		if err := unix.Statfs(mount, &fs); err != nil {
			return fmt.Errorf("look at %s: %w", mount, err)
		}
		if fs.Type != unix.CGROUP_SUPER_MAGIC && fs.Type != unix.CGROUP2_SUPER_MAGIC {
			return fmt.Errorf("%s has another file system", mount)
		}
	}
	return nil
}

// Exists says whether anything of the group is there.
func (g Group) Exists() bool { return len(g.dirs()) > 0 }

// Siblings lists the names beside this group, in every hierarchy it may use.
func (g Group) Siblings() ([]string, error) {
	var names []string
	for _, mount := range g.mounts() {
		entries, err := os.ReadDir(filepath.Join(mount, filepath.Dir(g.path)))
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
	}
	return names, nil
}

// Make makes the group where processes are tracked. Groups for limits are made
// by SetCPU and SetMemory.
func (g Group) Make() error {
	tracker, err := g.cgroups.tracker()
	if err != nil {
		return err
	}
	if g.parent == nil {
		return g.makeIn(tracker)
	}
	// No controller is handed down: a group that hands one down can have no
	// processes of its own (cgroups(7), version 2).
	if err := os.Mkdir(filepath.Join(tracker, g.path), 0o755); err != nil && !os.IsExist(err) {
		return fmt.Errorf("make cgroup %s: %w", g.path, err)
	}
	return nil
}

// parentTries bounds how often the parent that another host just found empty
// and removed is made again.
const parentTries = 10

// makeIn makes the directories below one mount point, and on version 2 hands
// the controllers down.
func (g Group) makeIn(mount string) error {
	var err error
	for range parentTries {
		if err = os.MkdirAll(filepath.Join(mount, g.path), 0o755); !os.IsNotExist(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("make cgroup %s: %w", g.path, err)
	}
	if mount != g.cgroups.V2 {
		return nil
	}
	for dir := filepath.Dir(g.path); ; dir = filepath.Dir(dir) {
		defer g.handDown(filepath.Join(mount, dir)) // deferred: the root comes first
		if dir == "." {
			return nil
		}
	}
}

// handDown enables what the group needs for the children of dir. Controllers
// that stay disabled show when a limit is set.
func (g Group) handDown(dir string) {
	for _, name := range []string{"cpu", "memory", "pids"} {
		if slices.Contains(g.cgroups.V2Knows, name) {
			os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+name), 0)
		}
	}
}

// Add moves a process into the group, in every hierarchy it has.
func (g Group) Add(pid int) error {
	for _, dir := range g.dirs() {
		if err := write(filepath.Join(dir, "cgroup.procs"), fmt.Sprint(pid)); err != nil {
			return err
		}
	}
	return nil
}

// Files lists the files through which a process joins the group; for a Sub
// that joins its parent where limits are.
func (g Group) Files() []string {
	var list []string
	dirs := g.dirs()
	if g.parent != nil {
		tracker, _ := g.cgroups.tracker()
		dirs = append(dirs, slices.DeleteFunc(g.parent.dirs(), func(dir string) bool {
			return dir == filepath.Join(tracker, g.parent.path)
		})...)
	}
	for _, dir := range dirs {
		list = append(list, filepath.Join(dir, "cgroup.procs"))
	}
	return list
}

func write(path, value string) error {
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		return fmt.Errorf("write %s to %s: %w", value, path, err)
	}
	return nil
}
