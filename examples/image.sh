#!/bin/sh
# Builds an image of Debian's package busybox-static, as an archive of the OCI image
# layout. It serves what is in /srv at port 80 unless its node says another command.
#
#   examples/image.sh ~/images/busybox.tar
#   sublet lab up demo --images ~/images
set -eu
[ $# -eq 1 ] || { echo "usage: $0 FILE" >&2; exit 2; }
case $1 in /*) out=$1 ;; *) out=$PWD/$1 ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

mkdir -p root/bin root/etc root/srv root/tmp blobs/sha256
if dpkg -s busybox-static >/dev/null 2>&1; then
	cp "$(command -v busybox)" root/bin/busybox
else
	apt-get -q download busybox-static >/dev/null
	dpkg-deb -x busybox-static_*.deb package
	cp "$(find package -name busybox -type f)" root/bin/busybox
fi
for applet in $(root/bin/busybox --list); do
	[ "$applet" = busybox ] || ln -s busybox "root/bin/$applet"
done
echo root:x:0:0:root:/:/bin/sh >root/etc/passwd
echo root:x:0: >root/etc/group
echo "<h1>It works</h1>" >root/srv/index.html
chmod 1777 root/tmp
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf layer -C root .

# blob files a blob under its digest, and says both for a descriptor.
blob() {
	digest=$(sha256sum "$1" | cut -d' ' -f1)
	size=$(stat -c %s "$1")
	mv "$1" "blobs/sha256/$digest"
	echo "\"digest\":\"sha256:$digest\",\"size\":$size"
}
oci=application/vnd.oci.image
layer=$(blob layer)
diff=$(echo "$layer" | cut -d'"' -f4)
cpu=$(dpkg --print-architecture) # Debian's names are those of OCI, for amd64 and arm64
cat >config <<-JSON
	{"architecture":"$cpu","os":"linux",
	"config":{"Env":["PATH=/bin","GREETING=from the image"],"Entrypoint":["/bin/busybox"],"Cmd":["httpd","-f","-v","-p","80","-h","/srv"],
	"WorkingDir":"/srv","ExposedPorts":{"80/tcp":{}}},
	"rootfs":{"type":"layers","diff_ids":["$diff"]}}
JSON
config=$(blob config)
cat >manifest <<-JSON
	{"schemaVersion":2,"mediaType":"$oci.manifest.v1+json",
	"config":{"mediaType":"$oci.config.v1+json",$config},
	"layers":[{"mediaType":"$oci.layer.v1.tar",$layer}]}
JSON
manifest=$(blob manifest)
echo "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"$oci.manifest.v1+json\",$manifest}]}" >index.json
echo '{"imageLayoutVersion":"1.0.0"}' >oci-layout
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf "$out" oci-layout index.json blobs
