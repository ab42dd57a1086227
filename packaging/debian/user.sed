# in the packages the services have users of their own, which the packages make
/^DynamicUser=yes$/{
  N
  s/^DynamicUser=yes\n\(User=.*\)$/\1/
  s/^DynamicUser=yes\n/User=@USER@\n/
}
