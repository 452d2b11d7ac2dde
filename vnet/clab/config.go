package clab

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joho/godotenv" // containerlab's own choice, so that files of variables are read alike
	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// configFiles are where kinds look for what startup-config names.
var configFiles = map[string]string{
	"frr":  "/etc/frr/frr.conf",
	"crpd": "/config/juniper.conf", "juniper_crpd": "/config/juniper.conf",
	"ceos": "/mnt/flash/startup-config", "arista_ceos": "/mnt/flash/startup-config",
}

// daemonsOfFRR are those that containerlab lets a node of kind frr run.
var daemonsOfFRR = []string{"bgpd", "ospfd", "ospf6d", "ripd", "ripngd", "isisd", "pimd", "ldpd", "nhrpd", "eigrpd", "babeld", "bfdd", "fabricd", "vrrpd", "pathd"}

// configure gives a node what its kind is configured with, and notes what
// cannot be given.
func (r *reader) configure(node, kind string, s *vnet.Setup, places ...*yaml.Node) {
	where, runs := "node "+short(node), s.Image != ""
	if n := first("startup-config", places...); n.Kind != 0 {
		text, why := r.text(node, n.Value)
		switch {
		case configFiles[kind] == "" || !runs:
			why = "where a node of this kind looks for it is not known: state it in binds"
		case why == "":
			s.Files = r.put(n, where, s.Files, vnet.File{Path: configFiles[kind], Text: text})
		}
		if why != "" {
			r.lost(n, where, "startup-config is left out: %s", why)
		}
	}
	extras := first("extras", places...)
	if kind != "frr" || !runs {
		if extras.Kind != 0 {
			r.lost(extras, where, "extras is left out")
		}
		return
	}
	ofFRR := value(extras, "frr")
	r.leaveOut(extras, where, "frr")
	r.leaveOut(ofFRR, where, "daemons")
	s.Files = r.put(extras, where, s.Files, vnet.File{Path: "/etc/frr/daemons", Text: r.daemons(where, value(ofFRR, "daemons"))})
	s.Files = r.put(extras, where, s.Files, vnet.File{Path: "/etc/frr/vtysh.conf", Text: "service integrated-vtysh-config\n"})
}

// text is what startup-config states: a file, or the configuration itself.
func (r *reader) text(node, config string) (text, why string) {
	if strings.Contains(config, "\n") {
		return config, ""
	}
	if strings.Contains(config, "://") {
		return "", "nothing is fetched: save it beside the topology"
	}
	files, why := r.read(node, config)
	if why == "" && (len(files) != 1 || files[0].Path != "") {
		why = "it is no file"
	}
	if why != "" {
		return "", why
	}
	return files[0].Text, ""
}

// daemons is FRR's file of those that run: the ones of a list, without one all.
func (r *reader) daemons(where string, list *yaml.Node) string {
	wanted := daemonsOfFRR
	if list.Kind == yaml.SequenceNode {
		wanted = nil
		for _, n := range list.Content {
			if !slices.Contains(daemonsOfFRR, n.Value) {
				r.lost(n, where, "daemon %s is left out: it is none", short(n.Value))
				continue
			}
			wanted = append(wanted, n.Value)
		}
	}
	text := ""
	for _, d := range wanted {
		text += d + "=yes\n"
	}
	return text + "vtysh_enable=yes\n"
}

// envFiles adds variables of env-files, those of a node's own files before those of
// its kind, and stated ones before both.
func (r *reader) envFiles(where string, stated map[string]string, places ...*yaml.Node) map[string]string {
	all := make(map[string]string)
	for _, p := range slices.Backward(places) {
		for _, n := range value(p, "env-files").Content {
			found, why := r.variables(n.Value)
			if why != "" {
				r.lost(n, where, "env-files: %.60q is left out: %s", n.Value, why)
			}
			maps.Copy(all, found)
		}
	}
	if len(all) == 0 {
		return stated
	}
	maps.Copy(all, stated)
	return all
}

func (r *reader) variables(source string) (map[string]string, string) {
	files, why := r.read("", source)
	switch {
	case why != "":
		return nil, why
	case len(files) != 1 || files[0].Path != "":
		return nil, "it is no file"
	case len(files[0].Text) > vnet.MaxFile:
		return nil, fmt.Sprintf("it has more than %d bytes", vnet.MaxFile)
	}
	found, err := godotenv.Unmarshal(files[0].Text)
	if err != nil {
		return nil, "it has no lines such as NAME=value"
	}
	return found, ""
}
