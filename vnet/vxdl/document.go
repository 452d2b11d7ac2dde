package vxdl

import (
	"fmt"
	"strings"

	"sublet/vnet"
)

// document reads the root, in any dialect.
func (r *reader) document(root *element) error {
	switch {
	case root.name == "virtualInfrastructure" && root.space == "":
		r.aurora = true
		return r.infrastructure(root)
	case root.name != "description" || root.space != Namespace:
		return r.fail(root, "is no VXDL root: write description in namespace %s, or Aurora's virtualInfrastructure without one", Namespace)
	}
	f, err := r.fields(root, "description")
	if err != nil {
		return err
	}
	infrastructure := f.one("virtualInfrastructure")
	if infrastructure == nil {
		return r.fail(root, "has no virtualInfrastructure: add one")
	}
	return r.infrastructure(infrastructure)
}

func (r *reader) infrastructure(e *element) error {
	f, err := r.fields(e, "virtualInfrastructure")
	if err != nil {
		return err
	}
	if err := r.head(e, f); err != nil {
		return err
	}
	for _, step := range []func(*element, fields) error{r.window, r.timeline, r.resources} {
		if err := step(e, f); err != nil {
			return err
		}
	}
	for _, list := range f["controllerList"] {
		r.lose(list, "a tenant's OpenFlow controller is not attached")
	}
	return nil
}

// head reads identity and ownership.
func (r *reader) head(e *element, f fields) error {
	id, err := r.id(e, f)
	if err != nil {
		return err
	}
	r.places["network"], r.places["tenant"], r.places["window"] = e, e, e
	r.request.Network = vnet.VNetID(r.valid(e, "id", id))
	owner := f.value("owner")
	if attribute, ok := e.attributes["owner"]; ok && r.aurora && owner == "" {
		owner = strings.TrimSpace(attribute)
	}
	if owner != "" {
		r.request.Tenant = vnet.TenantID(r.valid(e, "owner", owner))
	}
	for _, user := range f["user"] {
		if user.value() != owner {
			r.lose(user, "%q is not given access: only the tenant uses a lease", short(user.value()))
		}
	}
	return nil
}

// valid makes a name of an id, and says so when it had to change.
func (r *reader) valid(e *element, what, id string) string {
	name := validName(id)
	if name != id {
		r.note(e, "%s %q is written %q: names are letters, digits, '-' and '_', at most %d", what, short(id), name, vnet.MaxName)
	}
	return name
}

// claim makes a valid name nothing else has.
func (r *reader) claim(e *element, id string) string {
	base := r.valid(e, "id", id)
	name := base
	for r.taken[name] > 0 {
		r.taken[base]++
		suffix := fmt.Sprintf("-%d", r.taken[base])
		name = strings.TrimRight(base[:min(len(base), vnet.MaxName-len(suffix))], "-_") + suffix
	}
	if name != base {
		r.note(e, "id %q is written %q: nodes and links share one space of names", short(id), name)
	}
	r.taken[name] = max(r.taken[name], 1)
	return name
}

// validName replaces what vnet.CheckName refuses.
func validName(id string) string {
	name := strings.Map(func(c rune) rune {
		if c < 0x80 && vnet.CheckName("a"+string(c)+"a") == nil {
			return c
		}
		return '-'
	}, id)
	name = strings.Trim(name[:min(len(name), vnet.MaxName)], "-_")
	if name == "" {
		return "unnamed"
	}
	return name
}
