# the unit of the far end in one file is that of `pathcast serve`
s|pathcast serve --new-key|pathcast-far --new-key|
s|^ExecStart=.*|ExecStart=/usr/bin/pathcast-far --key-file ${CREDENTIALS_DIRECTORY}/keys|
s|^Documentation=.*|Documentation=man:pathcast-far(1)|
s|pathcast-serve.service|pathcast-far.service|g
s|pathcast-serve|pathcast-far|g
/^\[Unit\]/a ConditionPathExists=/etc/pathcast/keys
