// Writes TailCallsIl.dll with the methods that C# cannot express: calls with the `tail.` prefix.
// usage: TailCallsIl OUT.dll        The same bytes each time: the module's version id is a hash of its content.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;
using System.Security.Cryptography;

internal static class TailCallsIl
{
    private static readonly MetadataBuilder Metadata = new();
    private static readonly MethodBodyStreamEncoder Bodies = new(new BlobBuilder());
    private static readonly BlobBuilder FieldIsLong = Signature(b => new BlobEncoder(b).Field().Type().Int64());
    private static readonly string[] Counters = { "EvenCalls", "OddCalls", "FewCalls", "ManyCalls", "VirtualCalls", "PointerCalls", "LeafCalls" };

    // Rows are numbered in the order in which Main defines them.
    private static FieldDefinitionHandle Counter(string name) => MetadataTokens.FieldDefinitionHandle(1 + Array.IndexOf(Counters, name));

    private static readonly string[] Methods = { "Even", "Odd", "Few", "Many", "VirtualCaller", "PointerCaller", "Leaf", ".ctor", "Area" };

    private static MethodDefinitionHandle Method(string name) => MetadataTokens.MethodDefinitionHandle(1 + Array.IndexOf(Methods, name));

    private static void Main(string[] args)
    {
        Metadata.AddModule(0, Metadata.GetOrAddString("TailCallsIl.dll"), Metadata.ReserveGuid().Handle, default, default);
        Metadata.AddAssembly(Metadata.GetOrAddString("TailCallsIl"), new Version(1, 0, 0, 0), default, default, 0, AssemblyHashAlgorithm.Sha1);
        byte[] token = { 0xb0, 0x3f, 0x5f, 0x7f, 0x11, 0xd5, 0x0a, 0x3a };
        AssemblyReferenceHandle runtime = Metadata.AddAssemblyReference(
            Metadata.GetOrAddString("System.Runtime"), new Version(8, 0, 0, 0), default, Metadata.GetOrAddBlob(token), 0, default);
        TypeReferenceHandle baseType = Metadata.AddTypeReference(runtime, Metadata.GetOrAddString("System"), Metadata.GetOrAddString("Object"));
        MemberReferenceHandle baseConstructor = Metadata.AddMemberReference(
            baseType, Metadata.GetOrAddString(".ctor"), Metadata.GetOrAddBlob(MethodSignature(true, 0, false)));

        foreach (string counter in Counters)
        {
            Metadata.AddFieldDefinition(
                FieldAttributes.Public | FieldAttributes.Static, Metadata.GetOrAddString(counter), Metadata.GetOrAddBlob(FieldIsLong));
        }
        TypeDefinitionHandle shape = MetadataTokens.TypeDefinitionHandle(3);

        // Even(n): n == 0 ? 1 : Odd(n - 1) and back, in constant stack.
        Static("Even", 1, "EvenCalls", il => CountDown(il, "Odd", 1));
        Static("Odd", 1, "OddCalls", il => CountDown(il, "Even", 0));
        // Few(n) has no arguments on the stack, Many has three: they don't fit into the caller's frame.
        Static("Few", 1, "FewCalls", il => CountDown(il, "Many", 1, more: 8));
        Static("Many", 9, "ManyCalls", il =>
        {
            il.LoadArgument(0);
            Tail(il, Method("Few"));
        });
        Static("VirtualCaller", 1, "VirtualCalls", il =>
        {
            il.LoadArgument(0);
            il.LoadArgument(1);
            il.OpCode(ILOpCode.Tail);
            il.OpCode(ILOpCode.Callvirt);
            il.Token(Method("Area"));
            il.OpCode(ILOpCode.Ret);
        }, first: shape);
        Static("PointerCaller", 1, "PointerCalls", il =>
        {
            il.LoadArgument(0);
            il.OpCode(ILOpCode.Ldftn);
            il.Token(Method("Leaf"));
            il.OpCode(ILOpCode.Tail);
            il.CallIndirect(Metadata.AddStandaloneSignature(Metadata.GetOrAddBlob(MethodSignature(false, 1, true))));
            il.OpCode(ILOpCode.Ret);
        });
        Static("Leaf", 1, "LeafCalls", il =>
        {
            il.LoadArgument(0);
            il.OpCode(ILOpCode.Ret);
        });
        Define(".ctor", MethodAttributes.Family | MethodAttributes.HideBySig | MethodAttributes.SpecialName | MethodAttributes.RTSpecialName,
            MethodSignature(true, 0, false), Body(il =>
            {
                il.LoadArgument(0);
                il.Call(baseConstructor);
                il.OpCode(ILOpCode.Ret);
            }));
        Define("Area", MethodAttributes.Public | MethodAttributes.HideBySig | MethodAttributes.Virtual | MethodAttributes.NewSlot | MethodAttributes.Abstract,
            MethodSignature(true, 1, true), -1);

        Type(default, "<Module>", 0, default, 1, 1);
        Type("TailCalls", "Il", TypeAttributes.Public | TypeAttributes.Abstract | TypeAttributes.Sealed, baseType, 1, 1);
        Type("TailCalls", "Shape", TypeAttributes.Public | TypeAttributes.Abstract, baseType, Counters.Length + 1, 1 + Array.IndexOf(Methods, ".ctor"));
        Write(args[0]);
    }

    // if (argument 0 == 0) return atZero; else tail call next(argument 0 - 1, 1, 2, ...)
    private static void CountDown(InstructionEncoder il, string next, int atZero, int more = 0)
    {
        LabelHandle goOn = il.DefineLabel();
        il.LoadArgument(0);
        il.Branch(ILOpCode.Brtrue, goOn);
        il.LoadConstantI8(atZero);
        il.OpCode(ILOpCode.Ret);
        il.MarkLabel(goOn);
        il.LoadArgument(0);
        il.LoadConstantI8(1);
        il.OpCode(ILOpCode.Sub);
        for (int i = 1; i <= more; i++) il.LoadConstantI8(i);
        Tail(il, Method(next));
    }

    private static void Tail(InstructionEncoder il, EntityHandle target)
    {
        il.OpCode(ILOpCode.Tail);
        il.Call(target);
        il.OpCode(ILOpCode.Ret);
    }

    // A public static method of longs that first counts its own call; `first` puts an object before the longs.
    private static void Static(string name, int longs, string counter, Action<InstructionEncoder> body, TypeDefinitionHandle first = default)
    {
        int offset = Body(il =>
        {
            il.OpCode(ILOpCode.Ldsfld);
            il.Token(Counter(counter));
            il.LoadConstantI8(1);
            il.OpCode(ILOpCode.Add);
            il.OpCode(ILOpCode.Stsfld);
            il.Token(Counter(counter));
            body(il);
        });
        Define(name, MethodAttributes.Public | MethodAttributes.Static | MethodAttributes.HideBySig, MethodSignature(false, longs, true, first), offset);
    }

    private static int Body(Action<InstructionEncoder> write)
    {
        var il = new InstructionEncoder(new BlobBuilder(), new ControlFlowBuilder());
        write(il);
        return Bodies.AddMethodBody(il, maxStack: 10);
    }

    private static void Define(string name, MethodAttributes attributes, BlobBuilder signature, int body)
    {
        MethodImplAttributes implementation = body < 0 ? MethodImplAttributes.IL : MethodImplAttributes.IL | MethodImplAttributes.NoInlining;
        MethodDefinitionHandle defined = Metadata.AddMethodDefinition(
            attributes, implementation, Metadata.GetOrAddString(name), Metadata.GetOrAddBlob(signature), body, MetadataTokens.ParameterHandle(1));
        if (defined != Method(name)) throw new InvalidOperationException($"{name} is out of order");
    }

    private static BlobBuilder MethodSignature(bool instance, int longs, bool returnsLong, TypeDefinitionHandle first = default) => Signature(b =>
        new BlobEncoder(b).MethodSignature(isInstanceMethod: instance).Parameters(longs + (first.IsNil ? 0 : 1),
            result =>
            {
                if (returnsLong) result.Type().Int64();
                else result.Void();
            },
            parameters =>
            {
                if (!first.IsNil) parameters.AddParameter().Type().Type(first, isValueType: false);
                for (int i = 0; i < longs; i++) parameters.AddParameter().Type().Int64();
            }));

    private static BlobBuilder Signature(Action<BlobBuilder> write)
    {
        var blob = new BlobBuilder();
        write(blob);
        return blob;
    }

    private static void Type(string? space, string name, TypeAttributes attributes, EntityHandle baseType, int firstField, int firstMethod) =>
        Metadata.AddTypeDefinition(attributes | TypeAttributes.BeforeFieldInit,
            space is null ? default : Metadata.GetOrAddString(space), Metadata.GetOrAddString(name), baseType,
            MetadataTokens.FieldDefinitionHandle(firstField), MetadataTokens.MethodDefinitionHandle(firstMethod));

    private static void Write(string path)
    {
        var writer = new ManagedPEBuilder(
            new PEHeaderBuilder(imageCharacteristics: Characteristics.Dll | Characteristics.ExecutableImage),
            new MetadataRootBuilder(Metadata), Bodies.Builder, deterministicIdProvider: ContentId);
        var image = new BlobBuilder();
        BlobContentId id = writer.Serialize(image);
        File.WriteAllBytes(path, image.ToArray());
        GC.KeepAlive(id);
    }

    private static BlobContentId ContentId(IEnumerable<Blob> content)
    {
        using var hash = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        foreach (ArraySegment<byte> part in content.Select(blob => blob.GetBytes())) hash.AppendData(part);
        return BlobContentId.FromHash(hash.GetHashAndReset());
    }
}
