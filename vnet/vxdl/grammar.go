package vxdl

import (
	"maps"
	"slices"
	"strings"
)

// grammar lists the children of each type: at most one of each, or any number
// where a star follows. Order is free, as in the language's own schema. Types
// not listed hold text only.
var grammar = map[string]string{
	"description":           "virtualInfrastructure",
	"virtualInfrastructure": "id location startDate totalTime owner user* vNode* vAccessPoint* vRouter* vStorage* vLink* vArray* timeline",
	"vArray":                "id location cardinality vNode* vAccessPoint* vRouter* vStorage* vLink*",
	"vNode":                 resource + "device* image region memory storage cpu",
	"vStorage":              resource + "type image region size",
	"vLink":                 resource + "source destination bandwidth latency",
	"vRouter":               resource + "region memory controlPlane",
	"vAccessPoint":          resource + "region loadBalancer* nat* masquerade*",
	"tag":                   "key value",
	"cpu":                   "architecture cores frequency",
	"bandwidth":             "forward reverse",
	"controlPlane":          "layer type routingProtocol routingTable",
	"capacity":              "unit event* interval* simple* set* scale*",
	"interval":              "min max",
	"scale":                 "min max step",
	"timeline":              "event*",
	"event":                 "id delay",
}

const resource = "id location startDate totalTime model exclusivity tag* "

// auroraGrammar is what the Aurora dialect adds.
var auroraGrammar = map[string]string{
	"virtualInfrastructure": "controllerList*",
	"vNode":                 "interface* software_list*",
	"source":                "vNode vRouter interface",
	"destination":           "vNode vRouter interface",
}

// auroraAttributes are the attributes of the dialect; 2.0 has none.
var auroraAttributes = map[string]string{
	"virtualInfrastructure": "id owner",
	"vNode":                 "id", "vRouter": "id", "vLink": "id", "vAccessPoint": "id", "vStorage": "id", "vArray": "id",
	"controlPlane": "type routingProtocol",
}

// fields are an element's children by name.
type fields map[string][]*element

// one returns the only child of a name, or nil.
func (f fields) one(name string) *element {
	if len(f[name]) == 0 {
		return nil
	}
	return f[name][0]
}

// value returns the text of the only child of a name, or "".
func (f fields) value(name string) string {
	if e := f.one(name); e != nil {
		return e.value()
	}
	return ""
}

// fields sorts the children of an element of the given type. A repeated
// single-valued child is an error; an unknown one too when strict, and a note
// that keeps its XML otherwise.
func (r *reader) fields(e *element, kind string) (fields, error) {
	allowed := " " + grammar[kind] + " "
	if r.aurora {
		allowed += auroraGrammar[kind] + " "
	}
	if err := r.attributes(e, kind); err != nil {
		return nil, err
	}
	known := make(fields)
	for _, c := range e.children {
		many := strings.Contains(allowed, " "+c.name+"* ")
		if c.space != r.space() || !many && !strings.Contains(allowed, " "+c.name+" ") {
			if err := r.unknown(e, c, allowed); err != nil {
				return nil, err
			}
			continue
		}
		if first := known.one(c.name); first != nil && !many {
			return nil, r.fail(c, "stands twice in %s, first on line %d: keep one", e.label(), first.line)
		}
		if err := r.leaf(c, kind); err != nil {
			return nil, err
		}
		known[c.name] = append(known[c.name], c)
	}
	return known, r.strayText(e, kind)
}

// leaves are the elements that hold text only. In a timeline an event is a
// type, in a capacity a word; Aurora's ends of links hold elements.
const leaves = " id location startDate totalTime owner user model exclusivity key value device image region " +
	"architecture type layer routingProtocol cardinality unit event simple set min max step delay source destination "

// leaf reports what stands inside an element that holds text only.
func (r *reader) leaf(e *element, kind string) error {
	inside := r.aurora && (e.name == "source" || e.name == "destination") || kind == "timeline"
	if inside || !strings.Contains(leaves, " "+e.name+" ") {
		return nil
	}
	for _, c := range e.children {
		if err := r.unknown(e, c, "text"); err != nil {
			return err
		}
	}
	return r.attributes(e, "")
}

// strayText reports text between child elements, which has no meaning. A
// capacity of text alone is the older variant's; the text of Aurora's control
// plane names a controllerList, which has a note of its own.
func (r *reader) strayText(e *element, kind string) error {
	if e.value() == "" || kind == "capacity" && len(e.children) == 0 || r.aurora && kind == "controlPlane" {
		return nil
	}
	if r.strict {
		return r.fail(e, "holds text %q beside its elements: remove it", short(e.value()))
	}
	r.lose(e, "text %q beside the elements is ignored", short(e.value()))
	return nil
}

func (r *reader) unknown(parent, e *element, allowed string) error {
	what := "unknown here"
	if e.space != r.space() {
		what = "of another namespace"
	}
	if r.strict {
		return r.fail(e, "is %s: %s may hold %s", what, parent.label(), strings.Join(strings.Fields(strings.ReplaceAll(allowed, "*", "")), ", "))
	}
	r.lose(e, "%s in %s, ignored", what, parent.label())
	r.notes[len(r.notes)-1].Raw = e.raw(r.text)
	return nil
}

// attributes accepts those of the dialect; an id is also the older variant's.
func (r *reader) attributes(e *element, kind string) error {
	for _, name := range slices.Sorted(maps.Keys(e.attributes)) {
		if r.aurora && strings.Contains(" "+auroraAttributes[kind]+" ", " "+name+" ") {
			continue
		}
		if r.strict {
			return r.fail(e, "has an attribute %s, which VXDL 2.0 does not know: write elements only", name)
		}
		if name == "id" {
			r.note(e, "id as an attribute is an older form of VXDL, read as the element id")
		} else {
			r.lose(e, "attribute %s is unknown here, ignored", name)
		}
	}
	return nil
}

// space is the namespace of the document's dialect.
func (r *reader) space() string {
	if r.aurora {
		return ""
	}
	return Namespace
}

// id returns the id of an element, by child or by attribute.
func (r *reader) id(e *element, f fields) (string, error) {
	id, attribute := f.value("id"), strings.TrimSpace(e.attributes["id"])
	switch {
	case id != "" && attribute != "":
		return "", r.fail(e, "has an id as element and as attribute: keep one")
	case id == "" && attribute == "":
		return "", r.fail(e, "has no id: add one")
	}
	return id + attribute, nil
}
