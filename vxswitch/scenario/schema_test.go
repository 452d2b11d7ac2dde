package scenario

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	generator "github.com/invopop/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"sublet/vxswitch/sim"
)

var update = flag.Bool("update", false, "write the schemas of docs/schema")

const schemaFolder = "../../docs/schema/"

// patterns are the schema's word for quantities.
var patterns = map[reflect.Type]*generator.Schema{
	reflect.TypeFor[rate]():     {Type: "string", Pattern: `^[0-9.]+ ?[kKmMgGtT]?([bB][iI][tT](/[sS])?|[bB][pP][sS])$`},
	reflect.TypeFor[size]():     {Type: "string", Pattern: `^[0-9.]+ ?([kKmMgGtT][iI]?)?[bB]$`},
	reflect.TypeFor[span]():     {Type: "string", Pattern: `^(?:[0-9.]+d)?(?:[0-9.]+(?:ns|us|µs|ms|s|m|h))*$`, MinLength: new(uint64(1))},
	reflect.TypeFor[whole]():    {Type: "integer", Minimum: "0"},
	reflect.TypeFor[fraction](): number1(`^[0-9.eE+-]+ ?(%|/ ?[0-9.eE+-]+)?$`, "0"),
	reflect.TypeFor[number]():   number1(`^-?[0-9.]+(ns|us|µs|ms|s|m|h)$`, ""),
	// Values of a field that varies are read as they would be in its place.
	reflect.TypeFor[[]string]():          {Type: "array", Items: &generator.Schema{OneOf: []*generator.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}},
	reflect.TypeFor[map[string]string](): {Type: "object", AdditionalProperties: &generator.Schema{OneOf: []*generator.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}},
}

// number1 is a number, or a text of a pattern.
func number1(pattern string, minimum json.Number) *generator.Schema {
	return &generator.Schema{OneOf: []*generator.Schema{{Type: "number", Minimum: minimum}, {Type: "string", Pattern: pattern}}}
}

func schemaOfForm(t *testing.T) []byte {
	t.Helper()
	r := generator.Reflector{
		FieldNameTag: "yaml", Anonymous: true, ExpandedStruct: true,
		Mapper: func(t reflect.Type) *generator.Schema {
			if s, ok := patterns[t]; ok {
				c := *s // the reflector writes descriptions into it
				return &c
			}
			return nil
		},
	}
	s := r.Reflect(form{})
	s.Title = "Sublet switch scenario"
	return marshal(t, s)
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

type object = map[string]any

// figures is the schema of the measures, all required.
func figures(more object, required ...string) object {
	properties := object{}
	for _, m := range sim.Measures {
		properties[m.Name] = object{"type": []string{"number", "null"}, "description": m.Means}
		required = append(required, m.Name)
	}
	for name, s := range more {
		properties[name] = s
	}
	return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func text(about string) object  { return object{"type": "string", "description": about} }
func count(about string) object { return object{"type": "integer", "minimum": 0, "description": about} }
func list(of, about string) object {
	return object{"type": "array", "items": object{"$ref": "#/$defs/" + of}, "description": about}
}

// schemaOfReport is the schema of what sublet sim vxswitch -o json prints.
func schemaOfReport() object {
	ci := object{"$ref": "#/$defs/half_widths", "description": "Half-widths of the 95 % confidence intervals of the means over runs (Student's t). Absent for one run."}
	port := figures(object{"port": count("Of the physical switch, from 1."), "buffer_bytes": count("Of its crosspoints together."), "ci95": ci}, "port", "buffer_bytes")
	virtual := figures(object{
		"name": text("Of the virtual switch."), "crosspoint_buffer_bytes": count("Of one crosspoint."), "ci95": ci,
		"inputs": list("port", "Ports that packets came in by."), "outputs": list("port", "Ports that packets were for."),
	}, "name", "crosspoint_buffer_bytes", "inputs", "outputs")
	closed := func(required []string, properties object) object {
		return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	}
	any := object{"$ref": "#/$defs/figures"}
	number := object{"type": []string{"number", "null"}}
	return object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Sublet switch simulation",
		"$defs": object{
			"half_widths": figures(nil), "figures": figures(object{"ci95": ci}), "port": port, "virtual_switch": virtual,
			"split": closed([]string{"end_to_end", "paths", "reordered_packets", "late_packets", "stalls", "given_up_numbers"}, object{
				"end_to_end": any, "paths": list("port", "By output of the first switch: what came to the second, and the buffer there."),
				"reordered_packets": count("Packets that left after one with a higher number."), "late_packets": count("Packets dropped because their number had been given up."),
				"stalls": count("Waits that ran out."), "given_up_numbers": count("Numbers that all paths had passed."),
			}),
			"point": closed([]string{"set", "seeds", "duration_ns", "warmup_ns", "packet_events", "total", "virtual_switches"}, object{
				"set":         object{"type": []string{"object", "null"}, "additionalProperties": object{"type": "string"}, "description": "The values of what varies."},
				"seeds":       object{"type": "array", "items": object{"type": "integer"}, "description": "One for each run."},
				"duration_ns": count("Packets arrive before it."), "warmup_ns": count("Packets that arrive before it do not count."),
				"packet_events": count("Arrivals and departures of all runs."), "total": any,
				"virtual_switches": list("virtual_switch", "In the order of the scenario."), "split": object{"$ref": "#/$defs/split"},
			}),
			"verdict": closed([]string{"says", "met", "least", "most", "points", "allowed"}, object{
				"says": text("The statement."), "source": text("Where it is made."), "met": object{"type": "boolean"}, "least": number, "most": number,
				"points": count("Values looked at."), "allowed": text("The bounds."), "why": text("The first value out of bounds."),
			}),
		},
		"type": "object", "additionalProperties": false, "required": []string{"scenario", "points", "expect"},
		"properties": object{
			"scenario": text("Its name."), "points": list("point", "One for each combination of what varies; one if nothing does."),
			"expect": list("verdict", "In the order of the scenario."),
		},
	}
}

// schemaOfPacket is the schema of one line of traces, arrivals and departures.
func schemaOfPacket() object {
	return object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Sublet packet of a switch simulation, one line",
		"type": "object", "additionalProperties": false,
		"required": []string{"time_ns", "virtual_switch", "input", "output", "size_bytes"},
		"properties": object{
			"point": count("Index of the point in the experiment."), "run": count("Index of the run, from 0."),
			"time_ns": count("Arrivals and traces: when it arrived. Departures: when its transmission began."), "virtual_switch": text("Name."),
			"input": count("Physical port, from 1."), "output": count("Physical port, from 1."), "size_bytes": count("Of the frame."),
			"sequence":   count("Number of the arrival in its run, from 0, whatever became of the packets before it. Of a trace: as it states it, if every line does."),
			"arrival_ns": count("Departures: when it arrived."), "hop": count("Departures: 2 at the second switch of a split; absent at the first."),
		},
	}
}

// The published schemas are those of the code.
func TestSchemas(t *testing.T) {
	for file, text := range map[string][]byte{
		"scenario.schema.json":   schemaOfForm(t),
		"simulation.schema.json": marshal(t, schemaOfReport()),
		"packet.schema.json":     marshal(t, schemaOfPacket()),
	} {
		t.Run(file, func(t *testing.T) {
			if *update {
				if err := os.WriteFile(schemaFolder+file, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			have, err := os.ReadFile(schemaFolder + file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(have, text) {
				t.Errorf("%s is not what the code says: run go generate ./vxswitch/scenario", file)
			}
		})
	}
}

func compile(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(schemaFolder + file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plain turns YAML into what a JSON parser would give; editors do the same.
func plain(n *yaml.Node) any {
	switch n.Kind {
	case yaml.DocumentNode:
		return plain(n.Content[0])
	case yaml.MappingNode:
		m := make(map[string]any)
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = plain(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		made := []any{}
		for _, c := range n.Content {
			made = append(made, plain(c))
		}
		return made
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return json.Number(n.Value)
	case "!!bool":
		b, _ := strconv.ParseBool(n.Value)
		return b
	}
	return n.Value
}

func shipped(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../examples/vxswitch/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no scenarios", err)
	}
	return paths
}

// Every shipped scenario names its schema and satisfies it.
func TestSchemaAcceptsScenarios(t *testing.T) {
	schema := compile(t, "scenario.schema.json")
	for _, path := range shipped(t) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(string(content), "\n"); first != "# yaml-language-server: $schema=../../docs/schema/scenario.schema.json" {
			t.Errorf("%s begins %q, which does not name its schema", path, first)
		}
		var n yaml.Node
		if err := yaml.Unmarshal(content, &n); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(plain(&n)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
