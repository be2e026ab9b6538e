import Foundation
import PhotoLibrary
import Testing

extension RealMounts {
    @Suite("Permissions, times, names: extended attributes, through a mount") struct ExtendedAttributeTests {
        @Test func `user attributes are kept`() throws {
            try withMount { mount throws in
                let file = mount.path("file")
                try write("x", to: file)
                #expect(setxattr(file, "user.tag", "blue", 4, 0) == 0)
                #expect(setxattr(file, "user.empty", "", 0, 0) == 0)
                var value = [UInt8](repeating: 0, count: 10)
                #expect(getxattr(file, "user.tag", &value, 10) == 4)
                #expect(value.prefix(4) == ArraySlice("blue".utf8))
                #expect(getxattr(file, "user.tag", nil, 0) == 4)
                #expect(failure { getxattr(file, "user.tag", &value, 3) } == ERANGE)
                #expect(getxattr(file, "user.empty", &value, 10) == 0)
                #expect(listxattr(file, nil, 0) == "user.tag".utf8.count + "user.empty".utf8.count + 2)
                #expect(failure { Int(setxattr(file, "user.tag", "", 0, 1)) } == EEXIST)
                #expect(failure { Int(setxattr(file, "user.new", "", 0, 2)) } == ENODATA)
                #expect(removexattr(file, "user.tag") == 0)
                #expect(failure { getxattr(file, "user.tag", nil, 0) } == ENODATA)
            }
        }

        @Test(arguments: ["security.selinux", "security.capability", "system.posix_acl_access", "trusted.x"])
        func `others are not supported`(name: String) throws {
            try withMount { mount throws in
                let file = mount.path("file")
                try write("x", to: file)
                #expect(failure { getxattr(file, name, nil, 0) } == EOPNOTSUPP)
                #expect([EOPNOTSUPP, EINVAL].contains(failure { Int(setxattr(file, name, "v", 1, 0)) }))
                #expect(listxattr(file, nil, 0) == 0)
            }
        }
    }
}
