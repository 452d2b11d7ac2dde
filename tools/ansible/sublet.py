# Ansible's connections to nodes of leased networks, by `sublet exec` and
# `sublet cp`:
#
#   sublet get NAME -o ansible -w inventory.yaml
#   ANSIBLE_CONNECTION_PLUGINS=tools/ansible ansible-playbook -i inventory.yaml play.yaml
#
# Which server is asked, and as whom, is what `sublet` itself reads ($SUBLET_RUN,
# $SUBLET_SERVER, ...). $SUBLET names the program, if it is not in $PATH.

DOCUMENTATION = """
name: sublet
short_description: run commands in nodes of leased networks
description: Commands run by sublet exec, files are copied by sublet cp.
author: the authors of Sublet
options:
  node:
    description: NAME/NODE, as sublet exec takes it.
    type: str
    required: true
    vars:
      - name: sublet_node
"""

import os
import subprocess

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.connection import ConnectionBase

# What sublet exec returns when the command did not run (sublet exec --help).
NOT_RUN = 125


class Connection(ConnectionBase):
    transport = "sublet"
    has_pipelining = True

    def _connect(self):
        self._connected = True
        return self

    def _sublet(self, *args, **kwargs):
        command = [os.environ.get("SUBLET", "sublet"), *args]
        try:
            return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
        except OSError as e:
            raise AnsibleConnectionFailure("%s: %s" % (command[0], e))

    def exec_command(self, cmd, in_data=None, sudoable=True):
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        done = self._sublet("exec", self.get_option("node"), "--", "/bin/sh", "-c", cmd, input=in_data or b"")
        if done.returncode == NOT_RUN:
            raise AnsibleConnectionFailure(done.stderr.decode(errors="replace"))
        return done.returncode, done.stdout, done.stderr

    def _copy(self, source, target):
        done = self._sublet("cp", source, target, input=b"")
        if done.returncode != 0:
            raise AnsibleError("copy %s to %s: %s" % (source, target, done.stderr.decode(errors="replace")))

    def put_file(self, in_path, out_path):
        super().put_file(in_path, out_path)
        self._copy(in_path, "%s:%s" % (self.get_option("node"), out_path))

    def fetch_file(self, in_path, out_path):
        super().fetch_file(in_path, out_path)
        self._copy("%s:%s" % (self.get_option("node"), in_path), out_path)

    def close(self):
        self._connected = False
